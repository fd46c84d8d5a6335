"""One GP on the one-hot, imputed vector."""

from __future__ import annotations

import torch
from torch import Tensor

from nasbo.space import Space
from nasbo.surrogates.base import Batches
from nasbo.surrogates.kernel_gp import KernelGP
from nasbo.surrogates.kernels import LENGTHSCALE_SD, lengthscale_mean, matern, squared_distances
from nasbo.surrogates.layout import Layout


class OneHotGP(KernelGP):
    """A GP that is blind to the structure of the space.

    All parameters of the space stand side by side in one vector: choices and structural decisions
    one-hot, numbers in the unit cube, and inactive parameters at the middle of their range (the
    baseline of Jenatton et al. 2017). Matérn-5/2 with a lengthscale per parameter.
    """

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self.layout = Layout(space)
        columns = self.layout.columns
        scales = self.priors.add(len(columns), lengthscale_mean(len(columns)), LENGTHSCALE_SD)
        spread = [s for s, column in zip(scales, columns, strict=True) for _ in range(column.width)]
        self._scales = torch.tensor(spread)
        (self._weight,) = self.priors.add(1, 0.0, 1.0)

    def features(self, batches: Batches) -> Tensor:
        """Shape (n, n_features)."""
        return self.layout.rows(batches).features

    def gram(self, theta: Tensor, left: Tensor, right: Tensor) -> Tensor:
        scale = torch.exp(-theta[self._scales])
        distances = squared_distances(left * scale, right * scale)
        return theta[self._weight].exp() * matern(distances)

    def diagonal(self, theta: Tensor, rows: Tensor) -> Tensor:
        return theta[self._weight].exp().expand(len(rows))
