"""Acquisition under an inflated posterior standard deviation."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from nasbo.acquisition.base import Pointwise


@dataclass
class Wider(Pointwise):
    """Another acquisition with all posterior standard deviations multiplied by a factor.

    Attributes:
        inner: the acquisition, after its ``prepare``.
        factor: how many times.
    """

    inner: Pointwise
    factor: float

    def __post_init__(self) -> None:
        self.name, self.is_sampled = self.inner.name, self.inner.is_sampled  # type: ignore[misc]

    def score(self, mean: Tensor, variance: Tensor) -> Tensor:
        return self.inner.score(mean, self.factor**2 * variance)
