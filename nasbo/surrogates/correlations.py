"""Squared distances come in; correlations go out, by the name of the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from nasbo.surrogates.kernels import matern

KernelName = Literal["se", "matern"]
KERNELS: tuple[KernelName, ...] = ("se", "matern")


def squared_exponential(squared: Tensor) -> Tensor:
    """exp(-d^2 / 2) of squared distances, any shape."""
    return torch.exp(-0.5 * squared.clamp_min(0.0))


CORRELATIONS: dict[KernelName, Callable[[Tensor], Tensor]] = {
    "se": squared_exponential,
    "matern": matern,
}
"""Matérn is the one of smoothness 5/2."""
