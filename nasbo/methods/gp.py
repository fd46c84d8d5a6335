"""GP on the flattened space and log-EI."""

from __future__ import annotations

from nasbo.methods.base import Task
from nasbo.methods.modelled import SurrogateMethod
from nasbo.surrogates.one_hot import OneHotGP


class FlatGP(SurrogateMethod):
    """Structure-blind baseline: log-EI under one GP on the one-hot, imputed vector."""

    def make_surrogate(self, task: Task) -> OneHotGP:
        return OneHotGP(self.space)
