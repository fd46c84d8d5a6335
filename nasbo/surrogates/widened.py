"""A fitted surrogate comes in; the same one, less sure of itself, goes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nasbo.space import Subspace
from nasbo.surrogates.base import Batches, Observations, Surrogate


@dataclass
class Widened(Surrogate):
    """A surrogate whose variances are multiplied, for an acquisition to look around more.

    Hyperparameters at the maximum of their density leave out how little is known of them, so the
    posterior is too narrow where a search relies on it most: away from few results.

    Attributes:
        surrogate: fitted.
        factor: of all variances.
    """

    surrogate: Surrogate
    factor: float

    def __post_init__(self) -> None:
        self.scale = self.surrogate.scale

    def fit(self, observations: Observations) -> None:
        self.surrogate.fit(observations)
        self.scale = self.surrogate.scale

    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        mean, variance = self.surrogate.posteriors(batches)
        return mean, self.factor * variance

    def joint_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        mean, covariance = self.surrogate.joint_posterior(batches)
        return mean, self.factor * covariance

    def incumbent(self) -> float:
        return self.surrogate.incumbent()

    def with_pending(
        self, subspaces: Sequence[Subspace], x: Sequence[NDArray[np.float64]]
    ) -> Widened:
        return Widened(self.surrogate.with_pending(subspaces, x), self.factor)
