"""Active units of one type as a list, and the features that a kernel compares."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class SharedFeatures(NamedTuple):
    """List of the active units of ``n`` rows, row after row; equal
    feature values are stored once.

    Attributes:
        values: distinct features of units, shape (d, width).
        which: index in ``values`` of each active unit, shape (k,).
        unit: index in the type of each active unit, shape (k,).
        row: row of each active unit, shape (k,).
        n: number of rows.
    """

    values: Array
    which: Indices
    unit: Indices
    row: Indices
    n: int

    @property
    def is_distinct(self) -> bool:
        """Whether the active units are all distinct and in their own order."""
        return len(self.which) == len(self.values)

    @property
    def starts(self) -> tuple[Indices, Indices]:
        """Indices of the rows that have any unit, and where the units of each begin."""
        rows, starts = np.unique(self.row, return_index=True)
        return rows, starts


class Part(NamedTuple):
    """A kernel of units by some of their features.

    Attributes:
        features: positions among the features of a unit, shape (k,).
        scales: index of the log lengthscale of each, shape (k,).
        weight, sharing, reach: indices of log w, logit rho and log lambda.
    """

    features: Indices
    scales: Indices
    weight: int
    sharing: int
    reach: int


def distinct_rows(values: Array) -> tuple[Indices, Indices]:
    """Index of the first of each distinct row, shape (d,), and each row's
    index in those, shape (k,).
    """
    # Irrational factors give different rows different sums: one sort instead of many.
    factors = np.sqrt(np.arange(2.0, 2.0 + values.shape[1]) * 1.7320508 + 0.1234567)
    _, first, which = np.unique(values @ factors, return_index=True, return_inverse=True)
    return first, which
