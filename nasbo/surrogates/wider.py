"""A fitted surrogate comes in; the same one, less sure of itself, goes out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nasbo.history.data import Data
from nasbo.space import Subspace
from nasbo.surrogates.base import Batches, Surrogate


class Wider(Surrogate):
    """The same means; all standard deviations are a number of times larger.

    Args:
        inner: fitted.
        factor: how many times.
    """

    def __init__(self, inner: Surrogate, factor: float) -> None:
        self.inner, self.factor, self.scale = inner, factor, inner.scale

    def fit(self, observations: Data) -> None:
        self.inner.fit(observations)
        self.scale = self.inner.scale

    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        mean, variance = self.inner.posteriors(batches)
        return mean, self.factor**2 * variance

    def joint_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        mean, covariance = self.inner.joint_posterior(batches)
        return mean, self.factor**2 * covariance

    def incumbent(self) -> float:
        return self.inner.incumbent()

    def with_pending(
        self, subspaces: Sequence[Subspace], x: Sequence[NDArray[np.float64]]
    ) -> Wider:
        return Wider(self.inner.with_pending(subspaces, x), self.factor)
