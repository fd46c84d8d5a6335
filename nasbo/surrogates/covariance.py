"""Squared distances come in; Matérn covariances go out, with the way back for gradients.

The structured kernels compute in numpy with derivatives by hand: a round evaluates them some
hundred times on small matrices, where autograd would cost several times as much as the sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nasbo.surrogates.layout import Rows
from nasbo.surrogates.pairs import PairTerm

Array = NDArray[np.float64]
ALL = slice(None)
Pull = Callable[[Array, Array], None]
"""Takes the derivative of a loss by the covariances, and adds to its derivative by features.

The first argument has the shape of the covariances, the second is (n, n_features) of the rows on
the left.
"""


@dataclass(frozen=True)
class Table:
    """Rows as kernels take them: ``features`` (n, n_features) and ``active`` (n, n_gates)."""

    features: Array
    active: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: Rows) -> Table:
        """Rows without their way back to the unit cube."""
        return cls(rows.features.detach().numpy(), rows.active.numpy())

    def __len__(self) -> int:
        return len(self.features)

    def take(self, places: NDArray[np.intp]) -> Table:
        """Some of the rows."""
        return Table(self.features[places], self.active[places])

    def join(self, other: Table) -> Table:
        """These rows, then the others."""
        return Table(
            np.concatenate([self.features, other.features]),
            np.concatenate([self.active, other.active]),
        )


class Fixed(Protocol):
    """A kernel under some hyperparameters, against rows that stay the same."""

    def gram(self, rows: Table) -> tuple[Array, Pull]:
        """Covariances of rows with those that stay, shape (n, m)."""

    def diagonal(self, rows: Table) -> tuple[Array, Pull]:
        """Variances of rows, shape (n,)."""


class Kernel(Protocol):
    """A part of the covariance."""

    def against(self, theta: Array, seen: Table) -> Fixed:
        """The kernel under ``theta``, shape (p,), with all worked out that concerns ``seen``."""

    def pair_terms(self, rows: Table) -> list[PairTerm]:
        """The pairs of active units of the rows, for the fit."""


def squared_distances(left: Array, right: Array) -> Array:
    """Squared distances of (..., n, d) and (..., m, d): (..., n, m), none below 0."""
    squared = left @ np.swapaxes(right, -1, -2)
    squared *= -2.0
    squared += np.einsum("...d,...d->...", left, left)[..., :, None]
    squared += np.einsum("...d,...d->...", right, right)[..., None, :]
    return np.maximum(squared, 0.0, out=squared)


@dataclass(frozen=True)
class Matern:
    """Matérn-5/2 of squared distances: its values, and what its derivative needs."""

    values: Array
    distances: Array
    decay: Array

    @classmethod
    def of(cls, squared: Array) -> Matern:
        """At squared distances of any shape, which are overwritten."""
        squared *= 5.0
        d = np.sqrt(squared)
        decay = np.exp(-d)
        squared /= 3.0
        squared += d
        squared += 1.0
        squared *= decay
        return cls(squared, d, decay)

    def slopes(self, at: int | slice = ALL) -> Array:
        """Derivative by the squared distance, -5/6 (1 + d) exp(-d), finite at 0; or a part."""
        result: Array = (1.0 + self.distances[at]) * self.decay[at]
        result *= -5.0 / 6.0
        return result
