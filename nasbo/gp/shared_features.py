"""Active units of one type as a list, and which of their features a kernel compares."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class SharedFeatures(NamedTuple):
    """The active units of ``n`` rows as a list, row after row; equal values are held once.

    Attributes:
        values: distinct features of units, shape (d, width).
        which: which of them each active unit has, shape (k,).
        unit: which unit of the type each active one is, shape (k,).
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
        """Whether the active units are the distinct ones, in their order."""
        return len(self.which) == len(self.values)

    @property
    def starts(self) -> tuple[Indices, Indices]:
        """The rows that have any unit, and where the units of each begin."""
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
    """Index of one row of each kind, shape (d,), and which of them each row is, shape (k,)."""
    # Irrational factors give different rows different sums: one sort instead of many.
    factors = np.sqrt(np.arange(2.0, 2.0 + values.shape[1]) * 1.7320508 + 0.1234567)
    _, first, which = np.unique(values @ factors, return_index=True, return_inverse=True)
    return first, which
