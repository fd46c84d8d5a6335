"""Kernel of units that are compared by one column of few values.

Such a unit is in one of few *states*: which unit it is, and its value. Rows are counts of states.
With counts C, shape (n, d), and D, shape (m, e), and covariances T of states, shape (d, e), the
covariances of n and m rows are C T D'. No pair of units is listed: 100 rows of ``nas_cifar10`` have
at most 35 states instead of 600 units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nasbo.gp.kernels import Matern
from nasbo.gp.pairs import CountedTerm, Pull, SharedTerm, grouped_distances
from nasbo.gp.shared_features import Array, Indices, Part, SharedFeatures, distinct_rows


class States(NamedTuple):
    """States of the active units of ``n`` rows.

    Attributes:
        values: features of each state, shape (d, width).
        unit: the unit that each is a state of, shape (d,).
        which: index of each active unit's state, shape (k,).
        active: the active units, k of them.
    """

    values: Array
    unit: Indices
    which: Indices
    active: SharedFeatures

    @classmethod
    def of(cls, active: SharedFeatures, features: Indices) -> States:
        """The states of units by some of their features."""
        values = active.values[:, features]
        first, code = distinct_rows(values)
        n_codes = max(len(first), 1)
        states = active.unit * n_codes + code[active.which]
        is_met = np.zeros(n_codes * (1 + active.unit.max(initial=0)), dtype=bool)
        is_met[states] = True
        met = np.flatnonzero(is_met)
        which = (np.cumsum(is_met) - 1)[states]
        return cls(values[first[met % n_codes]], met // n_codes, which, active)

    @property
    def counts(self) -> Array:
        """Indicator of each state in each row, 0 or 1, shape (n, d)."""
        counts = np.zeros((self.active.n, len(self.unit)))
        counts[self.active.row, self.which] = 1.0
        return counts

    def term(self, part: Part, positions: Array) -> CountedTerm:
        """Kernel matrix term on pairs of states, for the fit; ``positions``
        of the units, (n_units,).
        """
        d = len(self.unit)
        left, right = np.divmod(np.arange(d * d), d)
        distances, scales = grouped_distances(self.values, left, right, part.scales)
        place = positions[self.unit]
        same = (self.unit[left] == self.unit[right]).astype(np.float64)
        numbers = np.vstack([distances, same, np.abs(place[left] - place[right])])
        own = (scales, part.weight, part.sharing, part.reach)
        return CountedTerm(self.counts, SharedTerm(np.arange(d * d), numbers, *own))


class FixedColumn:
    """The kernel under given hyperparameters, against the units of ``m`` rows.

    Args:
        part: which column it is of.
        scales: inverse lengthscales, shape (k,).
        relation: R, shape (n_units, n_units).
        columns: the features of each unit among those of a row, shape (n_units, width).
        seen: the units of the rows.
    """

    def __init__(
        self, part: Part, scales: Array, relation: Array, columns: Indices, seen: SharedFeatures
    ) -> None:
        self._features, self._scales, self._relation = part.features, scales, relation
        self._columns = columns[:, part.features]
        states = States.of(seen, part.features)
        self._far, self._far_unit = states.values * scales, states.unit
        self._far_counts = states.counts

    def gram(self, active: SharedFeatures) -> tuple[Array, Pull]:
        """Covariances, shape (n, m)."""
        states = States.of(active, self._features)
        near = states.values * self._scales
        matern = Matern.of(between(near, self._far))
        relation = self._relation[states.unit[:, None], self._far_unit]

        def pull(by_gram: Array, by_features: Array) -> None:
            by_state = (by_gram @ self._far_counts)[active.row]
            slopes = (relation * matern.slopes())[states.which] * by_state
            self._add(states, near, slopes, self._far, by_features)

        K: Array = states.counts @ (relation * matern.values @ self._far_counts.T)
        return K, pull

    def diagonal(self, active: SharedFeatures) -> tuple[Array, Pull]:
        """Variances, shape (n,)."""
        states = States.of(active, self._features)
        near, counts = states.values * self._scales, states.counts
        matern = Matern.of(between(near, near))
        relation = self._relation[states.unit[:, None], states.unit]

        def pull(by_diagonal: Array, by_features: Array) -> None:
            by_state = (2.0 * by_diagonal[:, None] * counts)[active.row]
            slopes = (relation * matern.slopes())[states.which] * by_state
            self._add(states, near, slopes, near, by_features)

        return np.einsum("nd,nd->n", counts @ (relation * matern.values), counts), pull

    def _add(
        self, states: States, near: Array, slopes: Array, far: Array, by_features: Array
    ) -> None:
        """Add the vector-Jacobian product by features; ``slopes`` are by
        squared distances, (k, e).
        """
        active = states.active
        moved = slopes.sum(1)[:, None] * near[states.which] - slopes @ far
        by_features[active.row[:, None], self._columns[active.unit]] += 2.0 * moved * self._scales


def between(left: Array, right: Array) -> Array:
    """Squared distances, (n, m), of rows, (n, d) and (m, d); for few rows."""
    gap = left[:, None] - right[None]
    return np.einsum("nmd,nmd->nm", gap, gap)
