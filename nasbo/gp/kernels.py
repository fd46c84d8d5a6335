"""Matérn-5/2 (torch, and numpy with its derivative) and squared exponential kernels.

Both are functions of the squared distance d^2. Matérn is (1 + r + r^2 / 3) exp(-r) with
r = sqrt(5) d; its derivative by d^2 is -5/6 (1 + r) exp(-r), which is finite at 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.gp.priors import Priors

Array = NDArray[np.float64]
KernelName = Literal["se", "matern"]
KERNELS: tuple[KernelName, ...] = ("se", "matern")
ALL = slice(None)


@dataclass(frozen=True)
class Matern:
    """Matérn-5/2 of squared distances in numpy: its values and the parts of its derivative."""

    values: Array
    distances: Array
    decay: Array

    @classmethod
    def of(cls, squared: Array, variance: float = 1.0) -> Matern:
        """At squared distances of any shape, which are overwritten."""
        squared *= 5.0
        r = np.sqrt(squared)
        decay = np.exp(-r)
        decay *= variance
        squared /= 3.0
        squared += r
        squared += 1.0
        squared *= decay
        return cls(squared, r, decay)

    def slopes(self, at: int | slice = ALL) -> Array:
        """Derivative by the squared distance, of all values or a part of them."""
        result: Array = (1.0 + self.distances[at]) * self.decay[at]
        result *= -5.0 / 6.0
        return result


class _Matern(torch.autograd.Function):
    """Matérn-5/2 with its own derivative: autograd would divide 0 by 0 at distance 0."""

    @staticmethod
    def forward(ctx: Any, squared: Tensor) -> Tensor:
        d = (squared.clamp_min(0.0) * 5.0).sqrt()
        decay = torch.exp(-d)
        ctx.save_for_backward(decay * (1.0 + d))
        return decay * (1.0 + d + d * d / 3.0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors
        return gradients[0] * slope * (-5.0 / 6.0)


def matern(squared: Tensor) -> Tensor:
    """Matérn-5/2 correlation of squared distances, any shape."""
    result: Tensor = _Matern.apply(squared)
    return result


def squared_exponential(squared: Tensor) -> Tensor:
    """exp(-d^2 / 2) of squared distances, any shape."""
    return torch.exp(-0.5 * squared.clamp_min(0.0))


CORRELATIONS: dict[KernelName, Callable[[Tensor], Tensor]] = {
    "se": squared_exponential,
    "matern": matern,
}


def squared_distances(left: Tensor, right: Tensor) -> Tensor:
    """Squared distances of (..., n, d) and (..., m, d): (..., n, m)."""
    lengths = (left * left).sum(-1)[..., :, None] + (right * right).sum(-1)[..., None, :]
    return lengths - 2.0 * left @ right.transpose(-1, -2)


@dataclass(frozen=True)
class ARDKernel:
    """ARD kernel: a correlation times a variance, with a lengthscale per parameter.

    Attributes:
        name: of the kernel.
        scales: index of the log lengthscale of each feature, shape (n_features,).
        weight: index of the log variance.
    """

    name: KernelName
    scales: Tensor
    weight: int

    @classmethod
    def add_to(
        cls, priors: Priors, owners: Sequence[int], log_weight: float, name: KernelName = "matern"
    ) -> ARDKernel:
        """Add hyperparameters for a new kernel; ``owners`` is the parameter of each feature."""
        scales = priors.add_lengthscales(len(set(owners)))
        spread = torch.tensor([scales[owner] for owner in owners], dtype=torch.long)
        (weight,) = priors.add(1, log_weight, 1.0)
        return cls(name, spread, weight)

    def gram(self, theta: Tensor, left: Tensor, right: Tensor) -> Tensor:
        """Covariances, shape (n, m), of features, shape (n, n_features) and (m, n_features)."""
        scale = torch.exp(-theta[self.scales])
        distances = squared_distances(left * scale, right * scale)
        return self.variance(theta) * CORRELATIONS[self.name](distances)

    def variance(self, theta: Tensor) -> Tensor:
        """Prior variance, a scalar."""
        return theta[self.weight].exp()
