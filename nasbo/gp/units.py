"""Columns, units and types of a space, and feature rows of its configs.

A *column* is a parameter name with its position in a list. Numbers of one name, and choices of one
name and set of values, share a column under different parents, since only one of them can be
active.

A *unit* is a set of parameters that exist together: those directly under one parent value, those at
the root, or those directly in one element of a repeated list. A structural parameter outside of
lists belongs to no unit: it is a *decision*. Units of one *type* are compared with each other:
either they have the same columns except for the position in the list, or their names are unique and
their ranges the same (x4 and x5 in [-1, 1] under two values of one choice often mean the same).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from nasbo.gp.features import ONE_HOT, FeatureMap
from nasbo.gp.free_features import FreeFeatures
from nasbo.gp.rows import Batches, Rows
from nasbo.space import Coordinate, Parameter, Space, Subspace, Value
from nasbo.space.parameter import RangeKey

MAX_ONE_HOT_LEVELS = 12
MAX_CACHED_SUBSPACES = 4096

ColumnKey = tuple[str, int, tuple[Value, ...]]


@dataclass(frozen=True)
class Column:
    """Features ``start`` to ``start + width`` of a row: one for a number,
    one per value for choices.
    """

    name: str
    index: int
    values: tuple[Value, ...]
    start: int

    @property
    def width(self) -> int:
        return len(self.values) or 1

    @property
    def label(self) -> str:
        """``rate``, or ``rate[2]`` in a list."""
        return f"{self.name}[{self.index}]" if self.index else self.name

    @property
    def kind(self) -> tuple[str, tuple[Value, ...]]:
        """What columns of different list positions share: name and values."""
        return self.name, self.values


@dataclass(frozen=True)
class Unit:
    """Parameters that exist together; ``columns`` are indices of columns."""

    branch: str
    index: int
    columns: tuple[int, ...]


@dataclass
class Layout:
    """The columns, units, types and decisions of a space, and what is known of its configs.

    Attributes:
        free: numbers known before a training; they stand behind the features of the columns.
    """

    space: Space
    free: FreeFeatures | None = None
    columns: list[Column] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    types: list[list[int]] = field(default_factory=list)
    decisions: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._column_of: dict[ColumnKey, int] = {}
        self._plans: dict[int, tuple[FeatureMap, Tensor]] = {}
        self._ranges: list[RangeKey] = []
        self._smooth: set[int] = set()
        members: dict[tuple[str, int], list[int]] = {}
        for node in self.space.nodes:
            branch, index = node.key
            coordinate = Coordinate(node.parameter, index, branch=branch)
            column = self._add_column(coordinate)
            if node.parameter.is_smooth:
                self._smooth.add(column)
            if coordinate.parameter.is_structural and not coordinate.index:
                self.decisions = list(dict.fromkeys([*self.decisions, column]))
            else:
                members.setdefault((coordinate.branch, coordinate.index), []).append(column)
        for (branch, index), columns in members.items():
            ordered = sorted(columns, key=lambda number: self.columns[number].name)
            self.units.append(Unit(branch, index, tuple(ordered)))
        self._unit_of = {(unit.branch, unit.index): at for at, unit in enumerate(self.units)}
        self.types = self._group_by_type()

    @property
    def n_features(self) -> int:
        return sum(column.width for column in self.columns)

    @property
    def width(self) -> int:
        """Features of a row, with the numbers known beforehand."""
        return self.n_features + len(self.free_features)

    @property
    def free_features(self) -> list[int]:
        """Where the numbers that are known beforehand stand in a row."""
        start = self.n_features
        return [] if self.free is None else list(range(start, start + len(self.free)))

    @property
    def owners(self) -> list[int]:
        """Index of the column that each feature belongs to."""
        return [at for at, column in enumerate(self.columns) for _ in range(column.width)]

    def unit_columns(self, unit: int, only: int | None = None) -> list[Column]:
        """The columns of a unit, or only the one at a position."""
        columns = [self.columns[number] for number in self.units[unit].columns]
        return columns if only is None else [columns[only]]

    def has_few_values(self, unit: int, only: int) -> bool:
        """Whether the column at a position of a unit has choices or few levels only."""
        return self.units[unit].columns[only] not in self._smooth

    def unit_features(self, unit: int, only: int | None = None) -> list[int]:
        """All features of a unit, or of the one column at a position, column after column."""
        columns = self.unit_columns(unit, only)
        return [c.start + offset for c in columns for offset in range(c.width)]

    def unit_scales(self, unit: int, scales: Sequence[int], only: int | None = None) -> list[int]:
        """Lengthscales of a unit's columns, or of the one at a position,
        repeated for each feature.
        """
        columns = self.unit_columns(unit, only)
        return [scale for scale, c in zip(scales, columns, strict=True) for _ in range(c.width)]

    def unit_gate(self, unit: int) -> int:
        """Column of ``Rows.active`` that says whether a unit exists."""
        return 1 + unit

    def decision_gate(self, decision: int) -> int:
        """Column of ``Rows.active`` that says whether a decision (by its index) exists."""
        return 1 + len(self.units) + decision

    def rows(self, batches: Batches) -> Rows:
        """Configs of several subspaces as features, differentiable in the numbers of ``x``."""
        parts = [(self._plan(subspace), x.to(torch.float64)) for subspace, x in batches]
        features = torch.cat([features(x) for (features, _), x in parts])
        if self.free is not None:
            known = [self.free.columns(s, x.detach().numpy()) for s, x in batches]
            features = torch.cat([features, torch.from_numpy(np.concatenate(known))], dim=1)
        active = torch.cat([active.expand(len(x), -1) for (_, active), x in parts])
        return Rows(features, active)

    def mean_active_units(self) -> float:
        """Mean number of units per config, over at most about 200 subspaces."""
        n = self.space.n_subspaces
        step = max(1, n // 200)
        counts = [
            len(
                {(s.branch, s.index) for s in self.space.subspace(at).coordinates}
                & set(self._unit_of)
            )
            for at in range(0, n, step)
        ]
        return max(1.0, sum(counts) / len(counts))

    def _add_column(self, coordinate: Coordinate) -> int:
        key = (coordinate.name, coordinate.index, _choices(coordinate.parameter))
        if key not in self._column_of:
            self._column_of[key] = len(self.columns)
            self.columns.append(Column(*key, start=self.n_features))
            self._ranges.append(coordinate.parameter.range_key)
        return self._column_of[key]

    def _group_by_type(self) -> list[list[int]]:
        types: dict[tuple[tuple[str, tuple[Value, ...]], ...], list[int]] = {}
        for at, unit in enumerate(self.units):
            kinds = tuple(self.columns[number].kind for number in unit.columns)
            types.setdefault(kinds, []).append(at)
        many = [units for units in types.values() if len(units) > 1]
        unique = [units[0] for units in types.values() if len(units) == 1]
        return many + self._group_by_range(unique)

    def _group_by_range(self, unique: Sequence[int]) -> list[list[int]]:
        """Group units of unique names by the ranges of their columns, which are sorted by range."""
        types: dict[tuple[RangeKey, ...], list[int]] = {}
        for at in unique:
            unit = self.units[at]
            columns = sorted(unit.columns, key=lambda c: (self._ranges[c], self.columns[c].name))
            self.units[at] = replace(unit, columns=tuple(columns))
            types.setdefault(tuple(self._ranges[c] for c in columns), []).append(at)
        return list(types.values())

    def _column(self, coordinate: Coordinate) -> Column:
        return self.columns[
            self._column_of[coordinate.name, coordinate.index, _choices(coordinate.parameter)]
        ]

    def _plan(self, subspace: Subspace) -> tuple[FeatureMap, Tensor]:
        """Feature map and active groups, (n_gates,), that all rows of a subspace share."""
        if subspace.index not in self._plans:
            if len(self._plans) >= MAX_CACHED_SUBSPACES:
                self._plans.clear()
            free = [self._column(one) for one in subspace.free]
            columns = [(column.start, len(column.values)) for column in free]
            features = FeatureMap(self._fixed_features(subspace), columns)
            self._plans[subspace.index] = features, self._active_gates(subspace)
        return self._plans[subspace.index]

    def _fixed_features(self, subspace: Subspace) -> Tensor:
        features = np.zeros(self.n_features)
        for coordinate in subspace.coordinates:
            if not coordinate.is_fixed:
                continue
            column = self._column(coordinate)
            if column.values:
                features[column.start + coordinate.parameter.level_of(coordinate.value)] = ONE_HOT
            else:
                features[column.start] = coordinate.parameter.to_unit(coordinate.value) - 0.5
        return torch.from_numpy(features)

    def _active_gates(self, subspace: Subspace) -> Tensor:
        active = np.zeros(1 + len(self.units) + len(self.decisions), dtype=bool)
        active[0] = True
        for coordinate in subspace.coordinates:
            if coordinate.is_fixed and not coordinate.index:
                key = coordinate.name, coordinate.index, _choices(coordinate.parameter)
                active[self.decision_gate(self.decisions.index(self._column_of[key]))] = True
            else:
                active[self.unit_gate(self._unit_of[coordinate.branch, coordinate.index])] = True
        return torch.from_numpy(active)


def _choices(parameter: Parameter) -> tuple[Value, ...]:
    """The values that get a one-hot code: those of choices and of short structural ranges."""
    is_short = parameter.is_structural and parameter.n_levels <= MAX_ONE_HOT_LEVELS
    if is_short or not parameter.is_ordered:
        return tuple(parameter.value_at(level) for level in range(parameter.n_levels))
    return ()
