"""Distances come in, Matérn correlations go out; and the priors of hyperparameters.

Hyperparameters of all kernels are logarithms (a logit for the sharing) in one flat vector, which
``Priors`` lays out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

LENGTHSCALE_SD = math.sqrt(3)


class _Matern(torch.autograd.Function):
    """Matérn-5/2 of the *squared* distance; the derivative -5/6 (1 + d) exp(-d) is finite at 0."""

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


def squared_distances(left: Tensor, right: Tensor) -> Tensor:
    """Squared distances of (..., n, d) and (..., m, d): (..., n, m)."""
    lengths = (left * left).sum(-1)[..., :, None] + (right * right).sum(-1)[..., None, :]
    return lengths - 2.0 * left @ right.transpose(-1, -2)


def lengthscale_mean(n_columns: int) -> float:
    """Prior mean of a log lengthscale among ``n_columns``: grows with the dimension."""
    return math.sqrt(2) - 3.0 + 0.5 * math.log(max(n_columns, 1))


@dataclass
class Priors:
    """Gaussian priors of all hyperparameters, in the order in which they were added."""

    means: list[float] = field(default_factory=list)
    sds: list[float] = field(default_factory=list)

    def add(self, n: int, mean: float, sd: float) -> list[int]:
        """Places of ``n`` new hyperparameters."""
        start = len(self.means)
        self.means += [mean] * n
        self.sds += [sd] * n
        return list(range(start, start + n))
