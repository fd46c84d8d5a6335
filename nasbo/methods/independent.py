"""History comes in; the best configs by log-EI under one GP per subspace go out."""

from __future__ import annotations

from nasbo.methods.base import Task
from nasbo.methods.modelled import SurrogateMethod
from nasbo.surrogates.independent import IndependentGPs


class Independent(SurrogateMethod):
    """A GP per subspace, log-EI, the best over all subspaces: no sharing at all.

    The baseline of Jenatton et al. (2017) and of Ma and Blaschko (2020).
    """

    def make_surrogate(self, task: Task) -> IndependentGPs:
        return IndependentGPs(self.space)
