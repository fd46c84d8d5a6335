"""Kernel that compares each unit with all units of its type (see ``nasbo.gp.units``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np
import scipy.sparse

from nasbo.gp.counted import FixedColumn, States
from nasbo.gp.kernel_sum import Pull
from nasbo.gp.kernels import ALL, Matern
from nasbo.gp.pairs import CountedTerm, PairTerm, SharedTerm, grouped_distances
from nasbo.gp.priors import Priors
from nasbo.gp.rows import Rows
from nasbo.gp.shared_features import Array, Indices, Part, SharedFeatures, distinct_rows
from nasbo.gp.units import Layout

MAX_PAIRS = 1 << 19
"""Number of pairs of units above which they are not listed; bounds memory and time."""
MIN_REPEATED = 256
"""Number of units from which on duplicates are merged."""
UNIT_LENGTHSCALE_SD = 1.0
"""Prior sd of log lengthscales in units that have others of their type; narrower than for other
units. Chosen by predictions on the tuning half of the benchmark and on instances of `share` and
`noshare` with other seeds."""


class SharedUnits:
    """Kernel k(x, x') = sum over units u of x, v of x', all of one type,
    of R(u, v) Matérn(u - v).

    R(u, v) = w [(1 - rho) 1(u = v) + rho exp(-|index_u - index_v| / lambda)] is attention between
    units with two learned numbers. The kernel is the sum of one such part on all features of the
    units and one per single column, each with hyperparameters of its own.

    Args:
        layout: of the space.
        units: indices of the units of the type.
        priors: the hyperparameters are added here.
        weights: prior means of log w, by the position of the column; ``None`` means all columns.
    """

    def __init__(
        self,
        layout: Layout,
        units: Sequence[int],
        priors: Priors,
        weights: Sequence[tuple[int | None, float]],
    ) -> None:
        self.members = tuple(units)
        self.columns = np.array([layout.unit_features(unit) for unit in units])
        self._positions = np.array([layout.units[unit].index for unit in units], dtype=np.float64)
        self._gates = np.array([layout.unit_gate(unit) for unit in units])
        self._parts: list[Part] = []
        self._counted: list[Part] = []
        for only, log_weight in weights:
            is_counted = only is not None and layout.has_few_values(units[0], only)
            part = _part(layout, units[0], priors, only, log_weight)
            (self._counted if is_counted else self._parts).append(part)

    def features(self, rows: Rows) -> SharedFeatures:
        """The active units of this type, row after row."""
        row, unit = np.nonzero(rows.gates[:, self._gates])
        values = rows.values[row[:, None], self.columns[unit]]
        which = np.arange(len(row))
        if len(row) >= MIN_REPEATED:
            first, others = distinct_rows(values)
            if len(first) < len(row):
                values, which = values[first], others
        return SharedFeatures(values, which, unit, row, rows.n)

    def against(self, theta: Array, seen: Rows) -> FixedPairs:
        """The kernel under fixed hyperparameters, against fixed rows."""
        units = self.features(seen)
        parts = []
        for part in self._parts:
            scales, relation = np.exp(-theta[part.scales]), self._relation(part, theta)
            far = units.values[:, part.features] * scales
            parts.append(FixedPart(part.features, scales, relation, far, relation[:, units.unit]))
        counted = [self._fixed(part, theta, units) for part in self._counted]
        return FixedPairs(self, parts, counted, units)

    def _fixed(self, part: Part, theta: Array, units: SharedFeatures) -> FixedColumn:
        scales, relation = np.exp(-theta[part.scales]), self._relation(part, theta)
        return FixedColumn(part, scales, relation, self.columns, units)

    def pair_terms(self, rows: Rows) -> list[PairTerm | CountedTerm]:
        """Terms on pairs of active units of rows i <= j, and on their states, for the fit.

        A unit's state is the combination of values that it has in the columns of a counted part.
        """
        units = self.features(rows)
        row, unit = units.row, units.unit
        left, right = np.nonzero(row[:, None] <= row[None, :])
        if not len(left):
            return []
        position = self._positions[unit]
        same = (unit[left] == unit[right]).astype(np.float64)
        gap = np.abs(position[left] - position[right])
        cells = row[left] * units.n + row[right]
        counted = [(part, States.of(units, part.features)) for part in self._counted]
        terms: list[PairTerm | CountedTerm] = [
            states.term(part, self._positions) for part, states in counted
        ]
        for part in self._parts:
            values = units.values[units.which][:, part.features]
            distances, scales = grouped_distances(values, left, right, part.scales)
            numbers = np.vstack([distances, same, gap])
            own = (part.weight, part.sharing, part.reach)
            terms.append(SharedTerm(cells, numbers, scales, *own))
        return terms

    def relation(self, theta: Array) -> Array:
        """Sum of R over the parts under the given hyperparameters, shape (n_units, n_units)."""
        return reduce(
            np.add, (self._relation(part, theta) for part in [*self._parts, *self._counted])
        )

    def _relation(self, part: Part, theta: Array) -> Array:
        gap = np.abs(self._positions[:, None] - self._positions[None])
        rho = 1.0 / (1.0 + math.exp(-theta[part.sharing]))
        near = np.exp(-gap / math.exp(theta[part.reach]))
        relation: Array = (1.0 - rho) * np.eye(len(gap)) + rho * near
        return math.exp(theta[part.weight]) * relation


def _part(layout: Layout, unit: int, priors: Priors, only: int | None, log_weight: float) -> Part:
    all_features, some = layout.unit_features(unit), layout.unit_features(unit, only)
    n = len(layout.unit_columns(unit, only))
    scales = priors.add_lengthscales(n, UNIT_LENGTHSCALE_SD)
    (weight,) = priors.add(1, log_weight, 1.0)
    (sharing,) = priors.add(1, 0.0, 1.5)
    (reach,) = priors.add(1, math.log(3.0), 1.0)
    features = np.array([all_features.index(feature) for feature in some])
    spread = np.array(layout.unit_scales(unit, scales, only))
    return Part(features, spread, weight, sharing, reach)


class FixedPart(NamedTuple):
    """A part under fixed hyperparameters, against fixed units.

    Attributes:
        features: positions among the features of a unit, shape (k,).
        scales: inverse lengthscales, shape (k,).
        relation: R, shape (n_units, n_units).
        far: scaled features of the fixed rows' distinct units, shape (d, k).
        relation_seen: R of each unit and those seen, shape (n_units, l).
    """

    features: Indices
    scales: Array
    relation: Array
    far: Array
    relation_seen: Array

    def near(self, units: SharedFeatures) -> Array:
        """Scaled features of the query rows' distinct units, shape (d, k)."""
        near: Array = units.values[:, self.features] * self.scales
        return near


class FixedPairs:
    """The kernel under fixed hyperparameters, against the units of ``m`` fixed rows.

    Args:
        kernel: the kernel.
        parts: its parts on pairs.
        counted: its parts on columns of few values.
        seen: the units of the rows.
    """

    def __init__(
        self,
        kernel: SharedUnits,
        parts: Sequence[FixedPart],
        counted: Sequence[FixedColumn],
        seen: SharedFeatures,
    ) -> None:
        self._kernel, self._parts, self._seen = kernel, parts, seen
        self._counted = counted
        self._others, self._starts = seen.starts

    def gram(self, rows: Rows) -> tuple[Array, Pull]:
        """Covariances, shape (n, m), and their vector-Jacobian product."""
        left = self._kernel.features(rows)
        return _sum([self._gram(left), *(column.gram(left) for column in self._counted)])

    def diagonal(self, rows: Rows) -> tuple[Array, Pull]:
        """Variances, shape (n,), and their vector-Jacobian product."""
        left = self._kernel.features(rows)
        return _sum([self._diagonal(left), *(column.diagonal(left) for column in self._counted)])

    def _gram(self, left: SharedFeatures) -> tuple[Array, Pull]:
        nears = [part.near(left) for part in self._parts]
        materns = [
            Matern.of(squared_distances(near, part.far))
            for near, part in zip(nears, self._parts, strict=True)
        ]
        n_at_once = MAX_PAIRS // max(len(self._seen.row), 1) + 1

        def pull(by_gram: Array, by_features: Array) -> None:
            for part, near, matern in zip(self._parts, nears, materns, strict=True):
                distinct = matern.slopes()
                far = part.far if self._seen.is_distinct else part.far[self._seen.which]
                for start in range(0, len(left.row), n_at_once):
                    some = slice(start, start + n_at_once)
                    row, unit = left.row[some], left.unit[some]
                    slopes = self._spread(distinct, left, some) * part.relation_seen[unit]
                    slopes *= by_gram[row][:, self._seen.row]
                    moved = slopes.sum(1)[:, None] * near[left.which[some]] - slopes @ far
                    columns = self._kernel.columns[unit][:, part.features]
                    by_features[row[:, None], columns] += 2.0 * moved * part.scales

        if len(left.row) * len(self._seen.row) > MAX_PAIRS:
            return self._sum_by_value([matern.values for matern in materns], left), pull
        pairs: Array = reduce(
            np.add,
            (
                self._spread(matern.values, left) * part.relation_seen[left.unit]
                for matern, part in zip(materns, self._parts, strict=True)
            ),
        )
        return self._sum_by_row(pairs, left), pull

    def _diagonal(self, left: SharedFeatures) -> tuple[Array, Pull]:
        own: Array = reduce(np.add, (part.relation.diagonal() for part in self._parts))
        variances = np.bincount(left.row, own[left.unit], left.n).astype(np.float64)
        first, second = _pairs_within(left.row)
        if not len(first):
            return variances, lambda *_: None
        pairs: list[tuple[FixedPart, Array, Matern, Array]] = []
        for part in self._parts:
            near = part.near(left)[left.which]
            between = near[first] - near[second]
            matern = Matern.of((between * between).sum(1))
            weights = 2.0 * part.relation[left.unit[first], left.unit[second]]
            variances += np.bincount(left.row[first], weights * matern.values, left.n)
            pairs.append((part, between, matern, weights))

        def pull(by_diagonal: Array, by_features: Array) -> None:
            for part, between, matern, weights in pairs:
                slopes = 2.0 * matern.slopes() * weights * by_diagonal[left.row[first]]
                moved = slopes[:, None] * between * part.scales
                columns = self._kernel.columns[left.unit][:, part.features]
                np.add.at(by_features, (left.row[first][:, None], columns[first]), moved)
                np.add.at(by_features, (left.row[second][:, None], columns[second]), -moved)

        return variances, pull

    def _spread(self, distinct: Array, left: SharedFeatures, some: slice = ALL) -> Array:
        """Expand values of distinct units to all pairs of units, shape (k, l)."""
        rows = distinct[some] if left.is_distinct else distinct[left.which[some]]
        return rows if self._seen.is_distinct else rows[:, self._seen.which]

    def _sum_by_row(self, pairs: Array, left: SharedFeatures) -> Array:
        """Sum over pairs of units, shape (k, l), for each pair of rows, shape (n, m)."""
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

    def _sum_by_value(self, distinct: Sequence[Array], left: SharedFeatures) -> Array:
        """Sum over pairs of units for each pair of rows, where the pairs are too many to list.

        For each unit of the type, the covariance of each of its distinct values with each fixed row
        is computed first, as a sparse product; rows then pick their values from it.

        Args:
            distinct: values of distinct pairs, (d, e) for each part.
            left: the units of the rows.
        """
        m = self._seen.n
        by_value = sum(
            incidence @ values.T
            for incidence, values in zip(self._incidences, distinct, strict=True)
        )
        K = np.zeros((m, left.n))
        for unit in range(len(self._kernel.members)):
            at = np.flatnonzero(left.unit == unit)
            K[:, left.row[at]] += by_value[unit * m : (unit + 1) * m][:, left.which[at]]
        return K.T

    @cached_property
    def _incidences(self) -> list[scipy.sparse.csr_matrix]:
        """For each part, a sparse matrix with R(u, v) at row u m + i, column = index of v's
        distinct value, for unit v of fixed row i: shape (n_units m, e).
        """
        seen = self._seen
        shape = (seen.n, len(seen.values))
        where = (seen.row, seen.which)
        return [
            scipy.sparse.vstack(
                [scipy.sparse.csr_matrix((one, where), shape=shape) for one in part.relation_seen],
                format="csr",
            )
            for part in self._parts
        ]


def _sum(parts: Sequence[tuple[Array, Pull]]) -> tuple[Array, Pull]:
    def pull(by_value: Array, by_features: Array) -> None:
        for _, part in parts:
            part(by_value, by_features)

    return reduce(np.add, (values for values, _ in parts)), pull


def squared_distances(left: Array, right: Array) -> Array:
    """Squared distances, (n, m), of (n, d) and (m, d); clipped at 0."""
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
