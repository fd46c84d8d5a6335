"""Kernel of units (see ``nasbo.gp.units``) that are compared with all others of their type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse

from nasbo.gp.kernel_sum import Array, Pull
from nasbo.gp.kernels import ALL, Matern
from nasbo.gp.pairs import Indices, PairTerm, Sharing, grouped_distances
from nasbo.gp.priors import Priors
from nasbo.gp.rows import Rows
from nasbo.gp.units import Layout

MAX_PAIRS = 1 << 19
"""From so many pairs of units on, they are not listed: that bounds memory and time."""
MIN_REPEATED = 256
"""From so many units on, equal ones are looked for."""
UNIT_LENGTHSCALE_SD = 1.0
"""Of the log lengthscales in units that have others of their type, a priori: narrower than for
others. Chosen by predictions on the tuning half of the benchmark and on instances of `share` and
`noshare` with other seeds."""


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


class SharedUnits:
    """k(x, x') = sum over units u of x, v of x', all of one type, of R(u, v) Matérn(u - v).

    R(u, v) = w [(1 - rho) 1(u = v) + rho exp(-|index_u - index_v| / lambda)]: attention between
    units with two learned numbers.

    Args:
        layout: of the space.
        units: those of the type.
        priors: get the hyperparameters.
        weight: prior mean of log w.
        only: the one column, by its position, that units are compared by; all if not given.
    """

    def __init__(
        self,
        layout: Layout,
        units: Sequence[int],
        priors: Priors,
        weight: float,
        only: int | None = None,
    ) -> None:
        self.members = tuple(units)
        self.columns = np.array([layout.unit_features(unit, only) for unit in units])
        self._positions = np.array([layout.units[unit].index for unit in units], dtype=np.float64)
        self._gates = np.array([layout.unit_gate(unit) for unit in units])
        n = len(layout.unit_columns(units[0], only))
        scales = priors.add_lengthscales(n, UNIT_LENGTHSCALE_SD)
        self._scales = np.array(layout.unit_scales(units[0], scales, only))
        (self._weight,) = priors.add(1, weight, 1.0)
        (self._sharing,) = priors.add(1, 0.0, 1.5)
        (self._reach,) = priors.add(1, math.log(3.0), 1.0)

    def features(self, rows: Rows) -> SharedFeatures:
        """The active units of this type, row after row."""
        row, unit = np.nonzero(rows.gates[:, self._gates])
        values = rows.values[row[:, None], self.columns[unit]]
        which = np.arange(len(row))
        if len(row) >= MIN_REPEATED:
            first, others = _distinct(values)
            if len(first) < len(row):
                values, which = values[first], others
        return SharedFeatures(values, which, unit, row, rows.n)

    def against(self, theta: Array, seen: Rows) -> FixedPairs:
        """The kernel under some hyperparameters, against some rows."""
        return FixedPairs(self, np.exp(-theta[self._scales]), self.relation(theta), seen)

    def pair_terms(self, rows: Rows) -> list[PairTerm]:
        """The pairs of active units of rows i <= j, for the fit."""
        units = self.features(rows)
        row, unit = units.row, units.unit
        left, right = np.nonzero(row[:, None] <= row[None, :])
        if not len(left):
            return []
        position = self._positions[unit]
        same = (unit[left] == unit[right]).astype(np.float64)
        gap = np.abs(position[left] - position[right])
        values = units.values[units.which]
        distances, scales = grouped_distances(values, left, right, self._scales)
        sharing = Sharing(same, gap, self._sharing, self._reach)
        cells = row[left] * units.n + row[right]
        return [PairTerm(cells, distances, scales, self._weight, sharing)]

    def relation(self, theta: Array) -> Array:
        """R under some hyperparameters, shape (n_units, n_units)."""
        gap = np.abs(self._positions[:, None] - self._positions[None])
        rho = 1.0 / (1.0 + math.exp(-theta[self._sharing]))
        near = np.exp(-gap / math.exp(theta[self._reach]))
        relation: Array = (1.0 - rho) * np.eye(len(gap)) + rho * near
        return math.exp(theta[self._weight]) * relation


class FixedPairs:
    """The units of a type under some hyperparameters, against those of ``m`` rows.

    Args:
        kernel: whose units they are.
        scales: inverse lengthscales, shape (width,).
        relation: R, shape (n_units, n_units).
        seen: the rows.
    """

    def __init__(self, kernel: SharedUnits, scales: Array, relation: Array, seen: Rows) -> None:
        self._kernel, self._scales, self._relation = kernel, scales, relation
        self._seen = kernel.features(seen)
        self._far = self._seen.values * scales
        self._others, self._starts = self._seen.starts
        self._relation_seen = relation[:, self._seen.unit]
        self._is_distinct = len(self._far) == len(self._seen.which)

    def gram(self, rows: Rows) -> tuple[Array, Pull]:
        """Covariances, shape (n, m)."""
        left = self._kernel.features(rows)
        near = left.values * self._scales
        matern = Matern.of(squared_distances(near, self._far))
        n_at_once = MAX_PAIRS // max(len(self._seen.row), 1) + 1

        def pull(by_gram: Array, by_features: Array) -> None:
            distinct = matern.slopes()
            for start in range(0, len(left.row), n_at_once):
                some = slice(start, start + n_at_once)
                row, unit = left.row[some], left.unit[some]
                slopes = self._spread(distinct, left, some) * self._relation_seen[unit]
                slopes *= by_gram[row][:, self._seen.row]
                moved = slopes.sum(1)[:, None] * near[left.which[some]]
                moved -= slopes @ (self._far if self._is_distinct else self._far[self._seen.which])
                by_features[row[:, None], self._kernel.columns[unit]] += 2.0 * moved * self._scales

        if len(left.row) * len(self._seen.row) > MAX_PAIRS:
            return self._sum_by_value(matern.values, left), pull
        pairs = self._spread(matern.values, left) * self._relation_seen[left.unit]
        return self._sum_by_row(pairs, left), pull

    def diagonal(self, rows: Rows) -> tuple[Array, Pull]:
        """Variances, shape (n,)."""
        left, relation = self._kernel.features(rows), self._relation
        own = np.bincount(left.row, relation.diagonal()[left.unit], left.n)
        variances = own.astype(np.float64)
        first, second = _pairs_within(left.row)
        if not len(first):
            return variances, lambda *_: None
        near = left.values[left.which] * self._scales
        between = near[first] - near[second]
        matern = Matern.of((between * between).sum(1))
        weights = 2.0 * relation[left.unit[first], left.unit[second]]
        variances += np.bincount(left.row[first], weights * matern.values, left.n)

        def pull(by_diagonal: Array, by_features: Array) -> None:
            slopes = 2.0 * matern.slopes() * weights * by_diagonal[left.row[first]]
            moved = slopes[:, None] * between * self._scales
            columns = self._kernel.columns[left.unit]
            np.add.at(by_features, (left.row[first][:, None], columns[first]), moved)
            np.add.at(by_features, (left.row[second][:, None], columns[second]), -moved)

        return variances, pull

    def _spread(self, distinct: Array, left: SharedFeatures, some: slice = ALL) -> Array:
        """The values of all pairs of some units, shape (k, l), from those of the distinct ones."""
        rows = distinct[some] if left.is_distinct else distinct[left.which[some]]
        return rows if self._is_distinct else rows[:, self._seen.which]

    def _sum_by_row(self, pairs: Array, left: SharedFeatures) -> Array:
        """Pairs of units, shape (k, l), summed up by pairs of rows, shape (n, m)."""
        K = np.zeros((left.n, self._seen.n))
        if not pairs.size:
            return K
        rows, starts = left.starts
        if len(starts) < len(left.row):
            pairs = np.add.reduceat(pairs, starts, axis=0)
        if len(self._starts) < len(self._seen.row):
            pairs = np.add.reduceat(pairs, self._starts, axis=1)
        K[rows[:, None], self._others] = pairs
        return K

    def _sum_by_value(self, distinct: Array, left: SharedFeatures) -> Array:
        """The same from distinct pairs, (d, e), where there are too many pairs to hold.

        For each unit of the type, what its distinct values have in common with each seen row
        comes first, as a sparse product; rows then pick what they have.
        """
        m = self._seen.n
        by_value = self._incidence @ distinct.T
        K = np.zeros((m, left.n))
        for unit in range(len(self._relation)):
            at = np.flatnonzero(left.unit == unit)
            K[:, left.row[at]] += by_value[unit * m : (unit + 1) * m][:, left.which[at]]
        return K.T

    @cached_property
    def _incidence(self) -> scipy.sparse.csr_matrix:
        """R(u, v) for each unit u, row and value of a unit v of that row: (n_units m, e)."""
        seen = self._seen
        shape = (seen.n, len(seen.values))
        parts = [scipy.sparse.csr_matrix((relation, (seen.row, seen.which)), shape=shape)
                 for relation in self._relation_seen]  # fmt: skip
        return scipy.sparse.vstack(parts, format="csr")


def squared_distances(left: Array, right: Array) -> Array:
    """Squared distances of (n, d) and (m, d): (n, m), none below 0."""
    squared = left @ right.T
    squared *= -2.0
    squared += np.einsum("nd,nd->n", left, left)[:, None]
    squared += np.einsum("md,md->m", right, right)
    return np.maximum(squared, 0.0, out=squared)


def _pairs_within(row: Indices) -> tuple[Indices, Indices]:
    """Indices of all pairs of different units of the same row, each pair once."""
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


def _distinct(values: Array) -> tuple[Indices, Indices]:
    """Index of one unit of each kind, shape (d,), and which of them each unit is, shape (k,)."""
    # Irrational factors give different units different sums: one sort instead of many.
    factors = np.sqrt(np.arange(2.0, 2.0 + values.shape[1]) * 1.7320508 + 0.1234567)
    _, first, which = np.unique(values @ factors, return_index=True, return_inverse=True)
    return first, which
