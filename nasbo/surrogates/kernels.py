"""Feature rows and hyperparameters come in; covariance matrices over conditional configs go out.

Two shapes carry all parts of the structured kernel: ``SingleUnits`` (each unit is compared with
itself only) and ``SharedUnits`` (units of one type are compared with each other). Hyperparameters
are logarithms (a logit for the sharing) in one flat vector, which ``Priors`` lays out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from nasbo.surrogates.layout import Layout, Rows
from nasbo.surrogates.pairs import PairTerm, Sharing, grouped_distances

LENGTHSCALE_SD = math.sqrt(3)


class _Matern(torch.autograd.Function):
    """Matérn-5/2 of the *squared* distance; the derivative -5/6 (1 + d) exp(-d) is finite at 0."""

    @staticmethod
    def forward(ctx: Any, squared: Tensor) -> Tensor:
        d = (squared.clamp_min(0.0) * 5.0).sqrt()
        decay = torch.exp(-d)
        ctx.save_for_backward(decay * (1.0 + d))
        return decay * (1.0 + d + d * d / 3.0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors
        return gradients[0] * slope * (-5.0 / 6.0)


def matern(squared: Tensor) -> Tensor:
    """Matérn-5/2 correlation of squared distances, any shape."""
    result: Tensor = _Matern.apply(squared)
    return result


def squared_distances(left: Tensor, right: Tensor) -> Tensor:
    """Squared distances of (..., n, d) and (..., m, d): (..., n, m)."""
    lengths = (left * left).sum(-1)[..., :, None] + (right * right).sum(-1)[..., None, :]
    return lengths - 2.0 * left @ right.transpose(-1, -2)


def lengthscale_mean(n_columns: int) -> float:
    """Prior mean of a log lengthscale among ``n_columns``: grows with the dimension."""
    return math.sqrt(2) - 3.0 + 0.5 * math.log(max(n_columns, 1))


@dataclass
class Priors:
    """Gaussian priors of all hyperparameters, in the order in which they were added."""

    means: list[float] = field(default_factory=list)
    sds: list[float] = field(default_factory=list)

    def add(self, n: int, mean: float, sd: float) -> list[int]:
        """Places of ``n`` new hyperparameters."""
        start = len(self.means)
        self.means += [mean] * n
        self.sds += [sd] * n
        return list(range(start, start + n))


class Kernel(Protocol):
    """A part of the covariance; ``features`` decides what the other methods are given."""

    def features(self, rows: Rows) -> Any: ...

    def gram(self, theta: Tensor, left: Any, right: Any) -> Tensor: ...

    def diagonal(self, theta: Tensor, rows: Any) -> Tensor: ...

    def pair_terms(self, rows: Any) -> list[PairTerm]: ...


class SingleUnit(NamedTuple):
    """One unit of ``SingleUnits``.

    Attributes:
        columns: features of the unit.
        scales: place of the log lengthscale of each feature.
        weight: place of the log weight.
        gate: column of ``Rows.active`` that says whether the unit exists.
    """

    columns: list[int]
    scales: list[int]
    weight: int
    gate: int


class SingleFeatures(NamedTuple):
    """The units that exist in any of ``n`` rows.

    Attributes:
        units: which units, shape (k,).
        values: their features, shape (k, n, width).
        active: 1 where a row has the unit, shape (k, n).
    """

    units: Tensor
    values: Tensor
    active: Tensor

    def only(self, units: Tensor) -> SingleFeatures:
        """The features of some of these units."""
        if len(units) == len(self.units):
            return self
        at = torch.searchsorted(self.units, units)
        return SingleFeatures(units, self.values[at], self.active[at])


class SingleUnits:
    """k(x, x') = sum over units active in both of w_u Matérn_u(u - u')."""

    def __init__(self, units: Sequence[SingleUnit]) -> None:
        self.units = list(units)
        width = max(len(unit.columns) for unit in units)
        pads = [[0] * (width - len(unit.columns)) for unit in units]
        self._columns = torch.tensor([u.columns + p for u, p in zip(units, pads, strict=True)])
        self._scales = torch.tensor([u.scales + p for u, p in zip(units, pads, strict=True)])
        real = [[1.0] * len(u.columns) + [0.0] * len(p) for u, p in zip(units, pads, strict=True)]
        self._real = torch.tensor(real, dtype=torch.float64)
        self._weights = torch.tensor([unit.weight for unit in units])
        self._gates = torch.tensor([unit.gate for unit in units])

    def features(self, rows: Rows) -> SingleFeatures:
        """What the kernel needs to know of the rows."""
        active = rows.active[:, self._gates].T.to(torch.float64)
        units = torch.nonzero(active.any(1))[:, 0]
        values = rows.features[:, self._columns[units]].permute(1, 0, 2)
        return SingleFeatures(units, values, active[units])

    def gram(self, theta: Tensor, left: SingleFeatures, right: SingleFeatures) -> Tensor:
        """Covariances, shape (n, m), of rows and rows."""
        common = left.units[torch.isin(left.units, right.units)]
        left, right = left.only(common), right.only(common)
        scale = (torch.exp(-theta[self._scales[common]]) * self._real[common])[:, None]
        correlation = matern(squared_distances(left.values * scale, right.values * scale))
        weighted = theta[self._weights[common]].exp()[:, None] * left.active
        return (correlation * weighted[:, :, None] * right.active[:, None, :]).sum(0)

    def diagonal(self, theta: Tensor, rows: SingleFeatures) -> Tensor:
        """Variances, shape (n,)."""
        return theta[self._weights[rows.units]].exp() @ rows.active

    def pair_terms(self, rows: SingleFeatures) -> list[PairTerm]:
        """The pairs of rows in which each unit is active, for the fit."""
        n = rows.active.shape[1]
        terms = []
        for at, unit in enumerate(self.units[number] for number in rows.units.tolist()):
            members = np.flatnonzero(rows.active[at].numpy())
            upper_i, upper_j = np.triu_indices(len(members))
            left, right = members[upper_i], members[upper_j]
            values = rows.values[at].numpy()[:, : len(unit.columns)]
            scales, groups = np.unique(unit.scales, return_inverse=True)
            distances = grouped_distances(values, left, right, groups, len(scales))
            terms.append(PairTerm(left * n + right, distances, scales, unit.weight))
        return terms


class SharedFeatures(NamedTuple):
    """The active units of ``n`` rows as a list; equal units are held once.

    Attributes:
        values: features of the distinct units, shape (d, width).
        unit: which unit of the type each of them is, shape (d,).
        row: row of each active unit, shape (k,).
        which: which of the distinct units it is, shape (k,).
        n: number of rows.
    """

    values: Tensor
    unit: Tensor
    row: Tensor
    which: Tensor
    n: int


class SharedUnits:
    """k(x, x') = sum over units u of x, v of x', all of one type, of R(u, v) Matérn(u - v).

    R(u, v) = w [(1 - rho) 1(u = v) + rho exp(-|index_u - index_v| / lambda)]: attention between
    units with two learned numbers.
    """

    def __init__(self, layout: Layout, units: Sequence[int], priors: Priors, weight: float) -> None:
        self._columns = torch.tensor([unit_columns(layout, unit) for unit in units])
        self._places = torch.tensor(
            [layout.units[unit].index for unit in units], dtype=torch.float64
        )
        self._gates = torch.tensor([layout.unit_gate(unit) for unit in units])
        n = len(layout.units[units[0]].columns)
        scales = priors.add(n, lengthscale_mean(n), LENGTHSCALE_SD)
        self._scales = torch.tensor(per_feature(layout, units[0], scales))
        (self._weight,) = priors.add(1, weight, 1.0)
        (self._sharing,) = priors.add(1, 0.0, 1.5)
        (self._reach,) = priors.add(1, math.log(3.0), 1.0)

    def features(self, rows: Rows) -> SharedFeatures:
        """The active units of this type, row after row."""
        row, unit = torch.nonzero(rows.active[:, self._gates], as_tuple=True)
        values = rows.features[row[:, None], self._columns[unit]]
        if values.requires_grad:  # few rows then, and all of them differ
            return SharedFeatures(values, unit, row, torch.arange(len(row)), len(rows.features))
        first, which = _distinct(values, unit)
        return SharedFeatures(values[first], unit[first], row, which, len(rows.features))

    def gram(self, theta: Tensor, left: SharedFeatures, right: SharedFeatures) -> Tensor:
        """Covariances, shape (n, m), of rows and rows."""
        scale = torch.exp(-theta[self._scales])
        pairs = matern(squared_distances(left.values * scale, right.values * scale))
        pairs = pairs * self._relation(theta)[left.unit][:, right.unit]
        by_row = pairs.new_zeros(left.n, pairs.shape[1]).index_add(0, left.row, pairs[left.which])
        return by_row.new_zeros(left.n, right.n).index_add(1, right.row, by_row[:, right.which])

    def diagonal(self, theta: Tensor, rows: SharedFeatures) -> Tensor:
        """Variances, shape (n,)."""
        n_units, width = self._columns.shape
        scaled = (rows.values * torch.exp(-theta[self._scales]))[rows.which]
        where = (rows.row, rows.unit[rows.which])
        dense = scaled.new_zeros(rows.n, n_units, width).index_put(where, scaled)
        exists = scaled.new_zeros(rows.n, n_units).index_put(where, scaled.new_ones(()))
        pairs = matern(squared_distances(dense, dense)) * self._relation(theta)
        return (pairs * exists[:, :, None] * exists[:, None, :]).sum((1, 2))

    def pair_terms(self, rows: SharedFeatures) -> list[PairTerm]:
        """The pairs of active units of rows i <= j, for the fit."""
        row, unit = rows.row.numpy(), rows.unit[rows.which].numpy()
        left, right = np.nonzero(row[:, None] <= row[None, :])
        if not len(left):
            return []
        place = self._places.numpy()[unit]
        same = (unit[left] == unit[right]).astype(np.float64)
        gap = np.abs(place[left] - place[right])
        scales, groups = np.unique(self._scales.numpy(), return_inverse=True)
        values = rows.values[rows.which].numpy()
        distances = grouped_distances(values, left, right, groups, len(scales))
        sharing = Sharing(same, gap, self._sharing, self._reach)
        cells = row[left] * rows.n + row[right]
        return [PairTerm(cells, distances, scales, self._weight, sharing)]

    def _relation(self, theta: Tensor) -> Tensor:
        """R, shape (n_units, n_units)."""
        gap = (self._places[:, None] - self._places[None]).abs()
        rho = torch.sigmoid(theta[self._sharing])
        same = torch.eye(len(gap), dtype=theta.dtype)
        near = torch.exp(-gap / theta[self._reach].exp())
        return theta[self._weight].exp() * ((1.0 - rho) * same + rho * near)


def _distinct(values: Tensor, unit: Tensor) -> tuple[Tensor, Tensor]:
    """Place of one unit of each kind, shape (d,), and which of them each unit is, shape (k,)."""
    # Irrational factors give different units different sums: one sort instead of many.
    factors = np.sqrt(np.arange(2.0, 2.0 + values.shape[1]) * 1.7320508 + 0.1234567)
    key = values.numpy() @ factors + 100.0 * unit.numpy()
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    return torch.from_numpy(first), torch.from_numpy(which)


def unit_columns(layout: Layout, unit: int) -> list[int]:
    """All features of a unit, column after column."""
    columns = (layout.columns[number] for number in layout.units[unit].columns)
    return [c.start + offset for c in columns for offset in range(c.width)]


def per_feature(layout: Layout, unit: int, scales: Sequence[int]) -> list[int]:
    """One lengthscale per column as one per feature."""
    columns = (layout.columns[number] for number in layout.units[unit].columns)
    return [scale for scale, c in zip(scales, columns, strict=True) for _ in range(c.width)]
