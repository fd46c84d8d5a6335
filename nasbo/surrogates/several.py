"""Surrogates of several trained objectives side by side, independent of each other."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.history.data import Data
from nasbo.space import Subspace
from nasbo.surrogates.base import Batches, Surrogate, as_batches

Array = NDArray[np.float64]


class SeveralSurrogates(Surrogate):
    """One surrogate per trained objective. What concerns one objective alone is that of the first.

    Args:
        parts: the surrogates, unfitted; all different.
        columns: of ``Data.y``, one per surrogate.

    Attributes:
        pending: the configs that all of them are conditioned on without a result.
    """

    def __init__(self, parts: Sequence[Surrogate], columns: Sequence[int]) -> None:
        self.parts, self.columns = list(parts), list(columns)
        self.pending: Batches = []

    def fit(self, data: Data) -> None:
        for part, column in zip(self.parts, self.columns, strict=True):
            part.fit(data if column == 0 else one_objective(data, column))
        self.scale = self.parts[0].scale

    def moments(self, batches: Batches) -> tuple[Tensor, Tensor]:
        """Means and variances of all trained objectives, shape (n, k) each."""
        found = [part.posteriors(batches) for part in self.parts]
        means, variances = zip(*found, strict=True)
        return torch.stack(means, 1), torch.stack(variances, 1)

    def all_observed_means(self, data: Data) -> Tensor:
        """Posterior means of the rows of the data they were fitted on, shape (n, k)."""
        means = [part.observed_means() for part in self.parts]
        if all(len(one) == len(data) for one in means):
            return torch.stack(means, 1)
        with torch.no_grad():  # long histories are thinned, each surrogate's in its own way
            return self.moments(as_batches(data.subspaces, data.x))[0]

    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        return self.parts[0].posteriors(batches)

    def joint_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        return self.parts[0].joint_posterior(batches)

    def observed_means(self) -> Tensor:
        return self.parts[0].observed_means()

    def lengthscales(self) -> dict[str, float]:
        return self.parts[0].lengthscales()

    def correlations(self, subspace: Subspace, x: Tensor, others: Batches) -> Tensor | None:
        return self.parts[0].correlations(subspace, x, others)

    def with_pending(self, subspaces: Sequence[Subspace], x: Sequence[Array]) -> Self:
        if not subspaces:
            return self
        extended = copy.copy(self)
        extended.parts = [part.with_pending(subspaces, x) for part in self.parts]
        extended.pending = [*self.pending, *as_batches(subspaces, x)]
        return extended


def one_objective(data: Data, column: int) -> Data:
    """Data of another objective alone; repeats are known of the first one only."""
    return replace(
        data,
        y=data.y[:, column],
        n_values=np.ones(len(data), dtype=np.intp),
        spread=np.zeros(len(data)),
    )
