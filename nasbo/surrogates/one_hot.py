"""GP on the flattened space: the one-hot, imputed vector of all parameters."""

from __future__ import annotations

from torch import Tensor

from nasbo.gp.kernels import ARDKernel
from nasbo.gp.rows import Batches
from nasbo.gp.units import Layout
from nasbo.space import Space
from nasbo.surrogates.base import KernelGP
from nasbo.surrogates.lengthscales import shortest


class OneHotGP(KernelGP):
    """GP that ignores the structure of the space.

    One vector holds all parameters of the space: choices and structural decisions one-hot, numbers
        in the unit cube, and inactive parameters at the middle of their range (the baseline of
        Jenatton et al. 2017). The kernel is Matérn-5/2 with a lengthscale per parameter.
    """

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self.layout = Layout(space)
        self.kernel = ARDKernel.add_to(self.priors, self.layout.owners, 0.0)

    def lengthscales(self) -> dict[str, float]:
        lengths = self.theta[self.kernel.scales].exp().tolist()
        return shortest((column.label, lengths[column.start]) for column in self.layout.columns)

    def features(self, batches: Batches) -> Tensor:
        """Shape (n, n_features)."""
        return self.layout.rows(batches).features
