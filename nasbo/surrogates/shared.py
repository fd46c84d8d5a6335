"""Feature rows come in; covariances of configs whose units are compared with each other go out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nasbo.surrogates.covariance import Array, Matern, Pull, Table, squared_distances
from nasbo.surrogates.kernels import LENGTHSCALE_SD, Priors, lengthscale_mean
from nasbo.surrogates.layout import Layout
from nasbo.surrogates.pairs import PairTerm, Sharing, grouped_distances

Places = NDArray[np.intp]

MAX_PAIRS = 1 << 21
"""Pairs of units that are held at once: bounds memory where histories are long."""
MIN_REPEATED = 256
"""From so many units on, equal ones are looked for."""


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
    which: Places
    unit: Places
    row: Places
    n: int

    def part(self, start: int, end: int) -> SharedFeatures:
        """The rows from ``start`` to ``end``; the distinct values stay."""
        a, b = np.searchsorted(self.row, (start, end))
        which, unit, row = self.which[a:b], self.unit[a:b], self.row[a:b] - start
        return SharedFeatures(self.values, which, unit, row, end - start)


class SharedUnits:
    """k(x, x') = sum over units u of x, v of x', all of one type, of R(u, v) Matérn(u - v).

    R(u, v) = w [(1 - rho) 1(u = v) + rho exp(-|index_u - index_v| / lambda)]: attention between
    units with two learned numbers.
    """

    def __init__(self, layout: Layout, units: Sequence[int], priors: Priors, weight: float) -> None:
        self._columns = np.array([unit_columns(layout, unit) for unit in units])
        self._places = np.array([layout.units[unit].index for unit in units], dtype=np.float64)
        self._gates = np.array([layout.unit_gate(unit) for unit in units])
        n = len(layout.units[units[0]].columns)
        scales = priors.add(n, lengthscale_mean(n), LENGTHSCALE_SD)
        self._scales = np.array(per_feature(layout, units[0], scales))
        (self._weight,) = priors.add(1, weight, 1.0)
        (self._sharing,) = priors.add(1, 0.0, 1.5)
        (self._reach,) = priors.add(1, math.log(3.0), 1.0)

    def features(self, rows: Table) -> SharedFeatures:
        """The active units of this type, row after row."""
        row, unit = np.nonzero(rows.active[:, self._gates])
        values = rows.features[row[:, None], self._columns[unit]]
        which = np.arange(len(row))
        if len(row) >= MIN_REPEATED:
            first, which = _distinct(values)
            values = values[first]
        return SharedFeatures(values, which, unit, row, len(rows.features))

    def gram(self, theta: Array, left: SharedFeatures, right: SharedFeatures) -> tuple[Array, Pull]:
        """Covariances, shape (n, m), of rows and rows."""
        scale = np.exp(-theta[self._scales])
        near, far = left.values * scale, right.values * scale
        matern = Matern.of(squared_distances(near, far))
        relation = self._relation(theta)
        K = np.zeros((left.n, right.n))
        step = max(1, MAX_PAIRS * left.n // max(1, len(left.row) * len(right.row)))
        for start in range(0, left.n, step):
            part = left.part(start, min(start + step, left.n))
            pairs = _spread(matern.values, part.which, right.which)
            pairs *= relation[part.unit][:, right.unit]
            K[start : start + step] = _sum_by_row(pairs, part, right)

        def pull(by_gram: Array, by_features: Array) -> None:
            slopes = _spread(matern.slopes(), left.which, right.which)
            slopes *= relation[left.unit][:, right.unit]
            slopes *= by_gram[left.row][:, right.row]
            here = near[left.which]
            moved = slopes.sum(1)[:, None] * here - slopes @ far[right.which]
            by_features[left.row[:, None], self._columns[left.unit]] += 2.0 * moved * scale

        return K, pull

    def diagonal(self, theta: Array, rows: SharedFeatures) -> tuple[Array, Pull]:
        """Variances, shape (n,)."""
        relation, scale = self._relation(theta), np.exp(-theta[self._scales])
        alone = np.zeros(rows.n)
        np.add.at(alone, rows.row, relation.diagonal()[rows.unit])
        first, second = _pairs_within(rows.row)
        if not len(first):
            return alone, lambda *_: None
        near = rows.values[rows.which] * scale
        between = near[first] - near[second]
        matern = Matern.of((between * between).sum(1))
        weights = 2.0 * relation[rows.unit[first], rows.unit[second]]
        np.add.at(alone, rows.row[first], weights * matern.values)

        def pull(by_diagonal: Array, by_features: Array) -> None:
            slopes = 2.0 * matern.slopes() * weights * by_diagonal[rows.row[first]]
            moved = slopes[:, None] * between * scale
            columns = self._columns[rows.unit]
            np.add.at(by_features, (rows.row[first][:, None], columns[first]), moved)
            np.add.at(by_features, (rows.row[second][:, None], columns[second]), -moved)

        return alone, pull

    def pair_terms(self, rows: SharedFeatures) -> list[PairTerm]:
        """The pairs of active units of rows i <= j, for the fit."""
        row, unit = rows.row, rows.unit
        left, right = np.nonzero(row[:, None] <= row[None, :])
        if not len(left):
            return []
        place = self._places[unit]
        same = (unit[left] == unit[right]).astype(np.float64)
        gap = np.abs(place[left] - place[right])
        scales, groups = np.unique(self._scales, return_inverse=True)
        distances = grouped_distances(rows.values[rows.which], left, right, groups, len(scales))
        sharing = Sharing(same, gap, self._sharing, self._reach)
        cells = row[left] * rows.n + row[right]
        return [PairTerm(cells, distances, scales, self._weight, sharing)]

    def _relation(self, theta: Array) -> Array:
        """R, shape (n_units, n_units)."""
        gap = np.abs(self._places[:, None] - self._places[None])
        rho = 1.0 / (1.0 + math.exp(-theta[self._sharing]))
        near = np.exp(-gap / math.exp(theta[self._reach]))
        relation: Array = (1.0 - rho) * np.eye(len(gap)) + rho * near
        return math.exp(theta[self._weight]) * relation


def _spread(distinct: Array, left: Places, right: Places) -> Array:
    """The values of all pairs, shape (k, l), a copy, from those of the distinct ones."""
    n, m = distinct.shape
    rows = distinct if len(left) == n and _is_range(left) else distinct[left]
    if len(right) == m and _is_range(right):
        return rows.copy() if rows is distinct else rows
    return rows[:, right]


def _is_range(places: Places) -> bool:
    return len(places) == 0 or bool((places == np.arange(len(places))).all())


def _sum_by_row(pairs: Array, left: SharedFeatures, right: SharedFeatures) -> Array:
    """Pairs of units, shape (k, l), summed up by pairs of rows, shape (n, m)."""
    K = np.zeros((left.n, right.n))
    if not pairs.size:
        return K
    rows, first = np.unique(left.row, return_index=True)
    others, start = np.unique(right.row, return_index=True)
    if len(first) < len(left.row):
        pairs = np.add.reduceat(pairs, first, axis=0)
    if len(start) < len(right.row):
        pairs = np.add.reduceat(pairs, start, axis=1)
    K[rows[:, None], others] = pairs
    return K


def _pairs_within(row: Places) -> tuple[Places, Places]:
    """Places of all pairs of different units of the same row, each pair once."""
    _, counts = np.unique(row, return_counts=True)
    if not len(counts) or counts.max() == 1:
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    starts = np.cumsum(counts) - counts
    firsts, seconds = [], []
    for count in np.unique(counts):
        i, j = np.triu_indices(int(count), 1)
        here = starts[counts == count][:, None]
        firsts.append((here + i).ravel())
        seconds.append((here + j).ravel())
    return np.concatenate(firsts), np.concatenate(seconds)


def _distinct(values: Array) -> tuple[Places, Places]:
    """Place of one unit of each kind, shape (d,), and which of them each unit is, shape (k,)."""
    # Irrational factors give different units different sums: one sort instead of many.
    factors = np.sqrt(np.arange(2.0, 2.0 + values.shape[1]) * 1.7320508 + 0.1234567)
    _, first, which = np.unique(values @ factors, return_index=True, return_inverse=True)
    return first, which


def unit_columns(layout: Layout, unit: int) -> list[int]:
    """All features of a unit, column after column."""
    columns = (layout.columns[number] for number in layout.units[unit].columns)
    return [c.start + offset for c in columns for offset in range(c.width)]


def per_feature(layout: Layout, unit: int, scales: Sequence[int]) -> list[int]:
    """One lengthscale per column as one per feature."""
    columns = (layout.columns[number] for number in layout.units[unit].columns)
    return [scale for scale, c in zip(scales, columns, strict=True) for _ in range(c.width)]
