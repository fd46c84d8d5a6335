"""A subspace comes in; rows of its unit cube go out: drawn, moved, neighbours, projections.

The same as ``Subspace`` does value by value, on whole arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nasbo.space import Parameter, Subspace

Array = NDArray[np.float64]

RELAXED_LEVELS = 8
"""Integers with more levels than this are polished like floats, then snapped."""
MAX_GRID = 256
"""Subspaces with no more configs than this are listed instead of drawn."""
CHANGE_CHOICE = 0.15
CHANGE_NUMBER = 0.7


class Box:
    """The unit cube of a subspace with its levels."""

    def __init__(self, subspace: Subspace) -> None:
        self.subspace = subspace
        parameters = [slot.parameter for slot in subspace.free]
        self.n_columns = len(parameters)
        self._n_levels = np.array([p.n_levels for p in parameters], dtype=np.intp)
        self._is_choice = np.array([p.kind == "choice" for p in parameters], dtype=bool)
        self._log_int = [at for at, p in enumerate(parameters) if p.kind == "int" and p.log]
        self._parameters = parameters
        is_float = self._n_levels == 0
        long = ~self._is_choice & (self._n_levels > RELAXED_LEVELS)
        self.polished = np.flatnonzero(is_float | long)
        self.discrete = np.flatnonzero(~is_float & (self._n_levels > 1))
        self.columns = {(s.name, s.index): at for at, s in enumerate(subspace.free)}

    def sample(self, n: int, rng: Generator) -> Array:
        """Uniform rows, shape (n, n_columns); the whole grid where it is small."""
        if self._n_levels.all() and np.prod(self._n_levels, dtype=float) <= MAX_GRID:
            axes = [_units(parameter) for parameter in self._parameters]
            grid = np.meshgrid(*axes, indexing="ij") if axes else []
            rows = np.stack([axis.ravel() for axis in grid], 1) if grid else np.zeros((1, 0))
            return self.snap(rows)
        return self.draw(n, rng)

    def draw(self, n: int, rng: Generator) -> Array:
        """Uniform rows, shape (n, n_columns), however few there are to draw from."""
        u = rng.random((n, self.n_columns))
        top = np.maximum(self._n_levels - 1, 1)
        levels = np.minimum(np.floor(u * self._n_levels), self._n_levels - 1) / top
        levels[:, self._log_int] = u[:, self._log_int]  # their levels are at unequal distances
        return self.snap(np.where(self._n_levels > 0, levels, u))

    def snap(self, x: Array) -> Array:
        """Rows moved to the nearest places that configs can have."""
        x = np.clip(x, 0.0, 1.0)
        top = np.maximum(self._n_levels - 1, 1)
        snapped = np.where(self._n_levels > 0, np.round(x * top) / top, x)
        for column in self._log_int:
            snapped[:, column] = _snap_log_int(self._parameters[column], x[:, column])
        return snapped

    def perturb(self, x: Array, rng: Generator) -> Array:
        """Rows moved at random by steps of very different sizes."""
        n = len(x)
        sd = 10.0 ** rng.uniform(-2.5, -0.6, size=(n, 1))
        moved = x + sd * rng.standard_normal(x.shape) * (rng.random(x.shape) < CHANGE_NUMBER)
        redrawn = np.where(rng.random(x.shape) < CHANGE_CHOICE, rng.random(x.shape), x)
        return self.snap(np.where(self._is_choice, redrawn, moved))

    def neighbours(self, row: Array) -> Array:
        """All rows that differ in one choice, or by one level of one integer: (n, n_columns)."""
        rows = []
        for column in self.discrete:
            for value in self._other_values(int(column), row):
                changed = row.copy()
                changed[column] = value
                rows.append(changed)
        return self.snap(np.array(rows)) if rows else np.zeros((0, self.n_columns))

    def project(self, subspace: Subspace, row: Array, n: int, rng: Generator) -> Array:
        """``n`` rows with the values of another subspace's row where the names agree."""
        rows = self.sample(n, rng)
        for at, slot in enumerate(subspace.free):
            column = self.columns.get((slot.name, slot.index))
            if column is not None and slot.parameter == self._parameters[column]:
                rows[:, column] = row[at]
        return rows

    def _other_values(self, column: int, row: Array) -> Sequence[float]:
        top = int(self._n_levels[column]) - 1
        if self._is_choice[column]:
            here = round(row[column] * top)
            return [level / top for level in range(top + 1) if level != here]
        parameter = self._parameters[column]
        level = parameter.level_of(parameter.from_unit(row[column]))
        near = (level - 1, level + 1)
        return [parameter.to_unit(parameter.value_at(at)) for at in near if 0 <= at <= top]


def _units(parameter: Parameter) -> Array:
    """The places of all levels, shape (n_levels,)."""
    return np.array([parameter.to_unit(parameter.value_at(at)) for at in range(parameter.n_levels)])


def _snap_log_int(parameter: Parameter, x: Array) -> Array:
    low, high = np.log(parameter.low), np.log(parameter.high)
    if high <= low:
        return np.zeros_like(x)
    number = np.clip(np.round(np.exp(low + x * (high - low))), parameter.low, parameter.high)
    units: Array = (np.log(number) - low) / (high - low)
    return units
