"""GP with the arc kernel and log-EI."""

from __future__ import annotations

from nasbo.methods.base import Task
from nasbo.methods.modelled import SurrogateMethod
from nasbo.surrogates.arc import ArcGP


class Arc(SurrogateMethod):
    """One GP with the arc kernel of Swersky et al. (2014), log-EI in each subspace."""

    def make_surrogate(self, task: Task) -> ArcGP:
        return ArcGP(self.space)
