"""Independent GPs, one per subspace, with log-EI."""

from __future__ import annotations

from typing import cast

from nasbo.gp.kernels import KERNELS, KernelName
from nasbo.methods.base import Task
from nasbo.methods.modelled import SurrogateMethod
from nasbo.methods.options import check_choice
from nasbo.space import Space
from nasbo.surrogates.independent import IndependentGPs


class Independent(SurrogateMethod):
    """One GP per subspace without sharing; the config of largest log-EI over all subspaces.

    The baseline of Jenatton et al. (2017), with Matérn, and of Ma and Blaschko (2020), with SE.

    Args:
        space: what to search.
        seed: of all random numbers.
        kernel: ``matern`` (5/2) or ``se``.
    """

    def __init__(self, space: Space, seed: int = 0, *, kernel: str = "matern") -> None:
        super().__init__(space, seed)
        check_choice("kernel", kernel, KERNELS)
        self.kernel = cast(KernelName, kernel)

    def make_surrogate(self, task: Task) -> IndependentGPs:
        return IndependentGPs(self.space, kernel=self.kernel)
