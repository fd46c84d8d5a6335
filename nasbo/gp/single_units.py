"""Kernel that compares each unit with itself alone (see ``nasbo.gp.units``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nasbo.gp.kernel_sum import Array, Pull
from nasbo.gp.kernels import Matern
from nasbo.gp.pairs import CountedTerm, MaternTerm, PairTerm, grouped_distances
from nasbo.gp.rows import Rows


class SingleUnit(NamedTuple):
    """One term of ``SingleUnits``: a unit, a structural decision or the whole config.

    Attributes:
        columns: features of the unit.
        scales: index of the log lengthscale of each feature.
        weight: index of the log weight.
        gate: column of ``Rows.active`` that says whether the unit exists.
        is_smooth: whether any feature is a number, so that there is a gradient.
    """

    columns: list[int]
    scales: list[int]
    weight: int
    gate: int
    is_smooth: bool = True


class SingleUnits:
    """Kernel k(x, x') = sum over units active in both configs of w_u Matérn_u(u - u')."""

    def __init__(self, units: Sequence[SingleUnit]) -> None:
        self.units = list(units)
        width = max(len(unit.columns) for unit in units)
        pads = [[0] * (width - len(unit.columns)) for unit in units]
        self.columns = np.array([u.columns + p for u, p in zip(units, pads, strict=True)])
        self._scales = np.array([u.scales + p for u, p in zip(units, pads, strict=True)])
        self._real = np.array(
            [[1.0] * len(u.columns) + [0.0] * len(p) for u, p in zip(units, pads, strict=True)]
        )
        self._weights = np.array([unit.weight for unit in units])
        self.gates = np.array([unit.gate for unit in units])

    def against(self, theta: Array, seen: Rows) -> FixedUnits:
        """The kernel under fixed hyperparameters, against fixed rows."""
        scales = np.exp(-theta[self._scales]) * self._real
        return FixedUnits(self, scales, np.exp(theta[self._weights]), seen)

    def pair_terms(self, rows: Rows) -> list[PairTerm | CountedTerm]:
        """Terms on pairs of rows in which a unit is active, for the fit."""
        n = rows.n
        terms: list[PairTerm | CountedTerm] = []
        for unit in self.units:
            members = np.flatnonzero(rows.gates[:, unit.gate])
            if not len(members):
                continue
            upper_i, upper_j = np.triu_indices(len(members))
            left, right = members[upper_i], members[upper_j]
            values = rows.values[:, unit.columns]
            distances, scales = grouped_distances(values, left, right, unit.scales)
            terms.append(MaternTerm(left * n + right, distances, scales, unit.weight))
        return terms


class FixedUnits:
    """The kernel under fixed hyperparameters, against ``m`` fixed rows.

    Args:
        kernel: the kernel of k units.
        scales: inverse lengthscales, 0 in the padding, shape (k, width).
        weights: of the units, shape (k,).
        seen: the rows.
    """

    def __init__(self, kernel: SingleUnits, scales: Array, weights: Array, seen: Rows) -> None:
        self._kernel, self._scales, self._weights = kernel, scales, weights
        active = seen.gates[:, kernel.gates].T
        self._is_present = active.any(1)
        self._gate = active * weights[:, None]
        self._far = seen.values.T[kernel.columns] * scales[:, :, None]
        self._lengths = np.einsum("kwm,kwm->km", self._far, self._far)

    def gram(self, rows: Rows) -> tuple[Array, Pull]:
        """Covariances, shape (n, m), and their vector-Jacobian product."""
        kernel = self._kernel
        active = rows.gates[:, kernel.gates]
        units = np.flatnonzero(active.any(0) & self._is_present)
        scales, far = self._scales[units], self._far[units]
        near = rows.values.T[kernel.columns[units]] * scales[:, :, None]
        squared = np.matmul(near.transpose(0, 2, 1), far)
        squared *= -2.0
        squared += np.einsum("kwn,kwn->kn", near, near)[:, :, None]
        squared += self._lengths[units][:, None]
        matern = Matern.of(np.maximum(squared, 0.0, out=squared))
        both = active.T[units][:, :, None] * self._gate[units][:, None]
        K = np.einsum("knm,knm->nm", matern.values, both)

        def pull(by_gram: Array, by_features: Array) -> None:
            for at, number in enumerate(units):
                unit = kernel.units[number]
                if not unit.is_smooth:
                    continue
                slopes = matern.slopes(at) * both[at] * by_gram
                moved = near[at] * slopes.sum(1) - far[at] @ slopes.T
                width = len(unit.columns)
                by_features[:, unit.columns] += 2.0 * (moved * scales[at][:, None])[:width].T

        return K, pull

    def diagonal(self, rows: Rows) -> tuple[Array, Pull]:
        """Variances, shape (n,), which do not depend on the features, and a vanishing product."""
        return rows.gates[:, self._kernel.gates] @ self._weights, lambda *_: None
