"""Squared distances come in; correlations go out, by the name of the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.surrogates.kernels import matern

Array = NDArray[np.float64]
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


def correlation_and_slope(name: KernelName, squared: Array) -> tuple[Array, Array]:
    """The same on arrays, and the derivative by the squared distance, of its shape each."""
    if name == "se":
        value: Array = np.exp(-0.5 * squared)
        return value, -0.5 * value
    d = np.sqrt(5.0 * squared)
    decay = np.exp(-d)
    slope = decay * (1.0 + d)
    return slope + decay * d * d / 3.0, (-5.0 / 6.0) * slope
