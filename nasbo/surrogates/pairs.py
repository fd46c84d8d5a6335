"""Pairs of active units come in; the distinct ones among them go out.

The fit works on lists of such pairs: pairs of equal distances (most of them, where the blocks of a
network consist of choices) are evaluated once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class Sharing:
    """Of each distinct pair of units: whether they are the same one, and their distance."""

    same: Array
    gap: Array
    rho: int
    reach: int


@dataclass(frozen=True)
class PairTerm:
    """One unit's (or type's) share of the kernel matrix, on pairs of rows i <= j.

    Attributes:
        cells: place i * n + j of each pair of active units, shape (p,).
        distances: squared distances per lengthscale, shape (n_scales, p).
        scales: places of the log lengthscales, shape (n_scales,).
        weight: place of the log weight.
        sharing: for units of one type; else the pair counts fully.
    """

    cells: Places
    distances: Array
    scales: Places
    weight: int
    sharing: Sharing | None = None


def grouped_distances(
    values: Array, left: Places, right: Places, groups: Places, n_groups: int
) -> Array:
    """Squared distances of pairs of rows of ``values``, (n, n_features), summed by group.

    Args:
        values: the rows.
        left: first row of each pair, shape (p,).
        right: second row of each pair, shape (p,).
        groups: group of each feature, shape (n_features,).
        n_groups: number of groups.

    Returns:
        Shape (n_groups, p).
    """
    distances = np.zeros((n_groups, len(left)))
    for feature, group in enumerate(groups):
        column = values[:, feature]
        distances[group] += (column[left] - column[right]) ** 2
    return distances


def compress(term: PairTerm) -> tuple[PairTerm, Places]:
    """The distinct pairs of a term, and for each pair the place of its like among them."""
    rows = [*term.distances]
    if term.sharing is not None:
        rows += [term.sharing.same, term.sharing.gap]
    # Irrational factors give different pairs different sums; rounding gathers float noise.
    factors = np.sqrt(np.arange(2.0, 2.0 + len(rows)) * 1.7320508 + 0.1234567)
    key = np.round(sum(f * row for f, row in zip(factors, rows, strict=True)), 10)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    sharing = term.sharing
    if sharing is not None:
        sharing = Sharing(sharing.same[first], sharing.gap[first], sharing.rho, sharing.reach)
    distinct = PairTerm(term.cells, term.distances[:, first], term.scales, term.weight, sharing)
    return distinct, inverse
