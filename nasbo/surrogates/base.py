"""The surrogate protocol: data in, a posterior per subspace out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.history.data import Data
from nasbo.space import Subspace
from nasbo.surrogates.transform import Scale

Batches = Sequence[tuple[Subspace, Tensor]]
"""Rows of several subspaces: each subspace with its ``x``, shape (n_i, n_free_i), float64."""


class Surrogate(Protocol):
    """One model over all subspaces.

    Attributes:
        scale: the way back from the scale on which it was fitted to scores.
    """

    scale: Scale

    def fit(self, data: Data) -> None:
        """Learn from the data; raises ``FitError`` where no usable model comes out."""

    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        """Mean and variance of the score of rows of any subspaces, in one pass.

        Args:
            batches: the rows, n in all, in the unit cubes of their subspaces.

        Returns:
            Mean and variance of the noise-free score, shape (n,) each, float64, differentiable in
            the rows, on the scale on which the surrogate was fitted (``incumbent`` is on it too).
        """

    def posterior(self, subspace: Subspace, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance in one subspace, shape (n,) each, for ``x`` of shape (n, n_free)."""
        return self.posteriors([(subspace, x)])

    def joint_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        """Mean, shape (n,), and covariance, shape (n, n), of rows of any subspaces."""

    def incumbent(self) -> float:
        """The largest posterior mean over the observed configs: what EI improves upon."""

    def with_pending(
        self, subspaces: Sequence[Subspace], x: Sequence[NDArray[np.float64]]
    ) -> Surrogate:
        """The same model, conditioned on running configs as if they had ended at their mean."""


class FitError(ArithmeticError):
    """A surrogate could not be fitted: non-finite loss, non-PSD kernel, too few rows."""


def batches_of(data: Data) -> Batches:
    """The rows of data as surrogates take them, in the same order."""
    return as_batches(data.subspaces, data.x)


def as_batches(subspaces: Sequence[Subspace], x: Sequence[NDArray[np.float64]]) -> Batches:
    """Single configs as rows: neighbours of one subspace go together, the order stays."""
    runs: list[tuple[Subspace, list[NDArray[np.float64]]]] = []
    for subspace, row in zip(subspaces, x, strict=True):
        if not runs or runs[-1][0].index != subspace.index:
            runs.append((subspace, []))
        runs[-1][1].append(row)
    return [(subspace, torch.from_numpy(np.stack(rows))) for subspace, rows in runs]


def gathered(batches: Batches) -> tuple[Batches, Tensor]:
    """All rows of a subspace in one batch, and where each row given stands in them, shape (n,)."""
    parts: dict[int, tuple[Subspace, list[Tensor], list[Tensor]]] = {}
    start = 0
    for subspace, x in batches:
        _, rows, places = parts.setdefault(subspace.index, (subspace, [], []))
        rows.append(x)
        places.append(torch.arange(start, start + len(x)))
        start += len(x)
    together = [(subspace, torch.cat(rows)) for subspace, rows, _ in parts.values()]
    places = [place for _, _, some in parts.values() for place in some]
    return together, torch.cat(places).argsort()
