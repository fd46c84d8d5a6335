"""Feature rows come in; covariances of configs whose units are compared with themselves go out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nasbo.surrogates.covariance import Array, Matern, Pull, Table, squared_distances
from nasbo.surrogates.pairs import PairTerm, grouped_distances

Places = NDArray[np.intp]


class SingleUnit(NamedTuple):
    """One unit of ``SingleUnits``.

    Attributes:
        columns: features of the unit.
        scales: place of the log lengthscale of each feature.
        weight: place of the log weight.
        gate: column of ``Table.active`` that says whether the unit exists.
        is_smooth: whether any feature is a number, so that there is a gradient.
    """

    columns: list[int]
    scales: list[int]
    weight: int
    gate: int
    is_smooth: bool = True


class SingleFeatures(NamedTuple):
    """The units that exist in any of ``n`` rows.

    Attributes:
        units: which units, shape (k,).
        values: their features, shape (k, n, width).
        active: 1 where a row has the unit, shape (k, n).
    """

    units: Places
    values: Array
    active: Array

    def only(self, units: Places) -> SingleFeatures:
        """The features of some of these units."""
        if len(units) == len(self.units):
            return self
        at = np.searchsorted(self.units, units)
        return SingleFeatures(units, self.values[at], self.active[at])


class SingleUnits:
    """k(x, x') = sum over units active in both of w_u Matérn_u(u - u')."""

    def __init__(self, units: Sequence[SingleUnit]) -> None:
        self.units = list(units)
        width = max(len(unit.columns) for unit in units)
        pads = [[0] * (width - len(unit.columns)) for unit in units]
        self._columns = np.array([u.columns + p for u, p in zip(units, pads, strict=True)])
        self._scales = np.array([u.scales + p for u, p in zip(units, pads, strict=True)])
        self._real = np.array(
            [[1.0] * len(u.columns) + [0.0] * len(p) for u, p in zip(units, pads, strict=True)]
        )
        self._weights = np.array([unit.weight for unit in units])
        self._gates = np.array([unit.gate for unit in units])

    def features(self, rows: Table) -> SingleFeatures:
        """What the kernel needs to know of the rows."""
        active = rows.active[:, self._gates].T.astype(np.float64)
        units = np.flatnonzero(active.any(1))
        values = rows.features.T[self._columns[units]].transpose(0, 2, 1)
        return SingleFeatures(units, np.ascontiguousarray(values), active[units])

    def gram(self, theta: Array, left: SingleFeatures, right: SingleFeatures) -> tuple[Array, Pull]:
        """Covariances, shape (n, m), of rows and rows."""
        common = left.units[np.isin(left.units, right.units, assume_unique=True)]
        left, right = left.only(common), right.only(common)
        scale = (np.exp(-theta[self._scales[common]]) * self._real[common])[:, None]
        near, far = left.values * scale, right.values * scale
        matern = Matern.of(squared_distances(near, far))
        gate = np.exp(theta[self._weights[common]])[:, None, None] * left.active[:, :, None]
        K = np.einsum("knm,kn,km->nm", matern.values, gate[:, :, 0], right.active)

        def pull(by_gram: Array, by_features: Array) -> None:
            smooth = [at for at, unit in enumerate(common) if self.units[unit].is_smooth]
            slopes = matern.slopes()
            for at in smooth:
                unit = self.units[common[at]]
                slope = slopes[at] * gate[at] * right.active[at] * by_gram
                moved = slope.sum(1)[:, None] * near[at] - slope @ far[at]
                width = len(unit.columns)
                by_features[:, unit.columns] += 2.0 * (moved * scale[at])[:, :width]

        return K, pull

    def diagonal(self, theta: Array, rows: SingleFeatures) -> tuple[Array, Pull]:
        """Variances, shape (n,); they do not depend on the features."""
        return np.exp(theta[self._weights[rows.units]]) @ rows.active, lambda *_: None

    def pair_terms(self, rows: SingleFeatures) -> list[PairTerm]:
        """The pairs of rows in which each unit is active, for the fit."""
        n = rows.active.shape[1]
        terms = []
        for at, unit in enumerate(self.units[number] for number in rows.units.tolist()):
            members = np.flatnonzero(rows.active[at])
            upper_i, upper_j = np.triu_indices(len(members))
            left, right = members[upper_i], members[upper_j]
            values = rows.values[at][:, : len(unit.columns)]
            scales, groups = np.unique(unit.scales, return_inverse=True)
            distances = grouped_distances(values, left, right, groups, len(scales))
            terms.append(PairTerm(left * n + right, distances, scales, unit.weight))
        return terms
