"""A space comes in; columns, units and types go out, and configs of any subspaces as feature rows.

A *column* is a parameter name with its place in a list; parameters of one name and range under
different parents share it, since only one of them can be active. A *unit* is the set of parameters
under one parent value, or one element of a repeated list; units with the same columns (but for the
place in the list) are of one *type*, and so are units of unique names with the same ranges: x4 and
x5 in [-1, 1] under two values of one choice often stand for the same thing. A *decision* is a
structural parameter outside of lists; inside a list it belongs to its element's unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from nasbo.space import Parameter, Slot, Space, Subspace, Value
from nasbo.space.parameter import RangeKey

MAX_ONE_HOT_LEVELS = 12
MAX_CACHED_SUBSPACES = 4096
ONE_HOT = math.sqrt(0.5)  # two different choices are then at distance 1

ColumnKey = tuple[str, int, tuple[Value, ...]]


@dataclass(frozen=True)
class Column:
    """Features ``start`` to ``start + width`` of a row: 1 for a number, one per choice else."""

    name: str
    index: int
    values: tuple[Value, ...]
    start: int

    @property
    def width(self) -> int:
        return len(self.values) or 1

    @property
    def kind(self) -> tuple[str, tuple[Value, ...]]:
        """What columns of different list places have in common."""
        return self.name, self.values


@dataclass(frozen=True)
class Unit:
    """Parameters that exist together: ``columns`` are numbers of columns, by name."""

    branch: str
    index: int
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Rows:
    """Configs as features.

    Attributes:
        features: numbers as value - 0.5, choices one-hot times sqrt(0.5), 0 where inactive;
            shape (n, n_features), float64.
        active: 1 where a group exists: column 0 always, then units, then decisions;
            shape (n, 1 + n_units + n_decisions), bool.
    """

    features: Tensor
    active: Tensor


@dataclass(frozen=True)
class _Map:
    """How the columns of ``x`` of one subspace fill a feature row."""

    fixed: Tensor
    active: Tensor
    number_from: Tensor
    number_to: Tensor
    choice_from: Tensor
    choice_start: Tensor
    choice_top: Tensor


@dataclass
class Layout:
    """The columns, units, types and decisions of a space."""

    space: Space
    columns: list[Column] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    types: list[list[int]] = field(default_factory=list)
    decisions: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._column_of: dict[ColumnKey, int] = {}
        self._maps: dict[int, _Map] = {}
        self._ranges: list[RangeKey] = []
        members: dict[tuple[str, int], list[int]] = {}
        for node in self.space.nodes:
            branch, index = node.key
            slot = Slot(node.parameter, index, branch=branch)
            column = self._add_column(slot)
            if slot.parameter.is_structural and not slot.index:
                self.decisions = list(dict.fromkeys([*self.decisions, column]))
            else:
                members.setdefault((slot.branch, slot.index), []).append(column)
        for (branch, index), columns in members.items():
            ordered = sorted(columns, key=lambda number: self.columns[number].name)
            self.units.append(Unit(branch, index, tuple(ordered)))
        self._unit_of = {(unit.branch, unit.index): at for at, unit in enumerate(self.units)}
        self.types = self._group_by_type()

    @property
    def n_features(self) -> int:
        return sum(column.width for column in self.columns)

    def unit_gate(self, unit: int) -> int:
        """Column of ``Rows.active`` that says whether a unit exists."""
        return 1 + unit

    def decision_gate(self, decision: int) -> int:
        """Column of ``Rows.active`` that says whether a decision (by its place) exists."""
        return 1 + len(self.units) + decision

    def rows(self, batches: Sequence[tuple[Subspace, Tensor]]) -> Rows:
        """Configs of several subspaces as features, differentiable in the numbers of ``x``.

        Args:
            batches: a subspace and its rows, shape (n_i, n_free_i) in the unit cube, each.
        """
        parts = [(self._map(subspace), x.to(torch.float64)) for subspace, x in batches]
        features = torch.cat([_fill(plan, x) for plan, x in parts])
        active = torch.cat([plan.active.expand(len(x), -1) for plan, x in parts])
        return Rows(features, active)

    def mean_active_units(self) -> float:
        """How many units a config has, in the mean over the subspaces (at most 200 of them)."""
        n = self.space.n_subspaces
        step = max(1, n // 200)
        counts = [
            len({(s.branch, s.index) for s in self.space.subspace(at).slots} & set(self._unit_of))
            for at in range(0, n, step)
        ]
        return max(1.0, sum(counts) / len(counts))

    def _add_column(self, slot: Slot) -> int:
        key = (slot.name, slot.index, _choices(slot.parameter))
        if key not in self._column_of:
            self._column_of[key] = len(self.columns)
            self.columns.append(Column(*key, start=self.n_features))
            self._ranges.append(slot.parameter.range_key)
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
        """Units of unique names by the ranges of their columns, which are put into that order."""
        types: dict[tuple[RangeKey, ...], list[int]] = {}
        for at in unique:
            unit = self.units[at]
            columns = sorted(unit.columns, key=lambda c: (self._ranges[c], self.columns[c].name))
            self.units[at] = replace(unit, columns=tuple(columns))
            types.setdefault(tuple(self._ranges[c] for c in columns), []).append(at)
        return list(types.values())

    def _column(self, slot: Slot) -> Column:
        return self.columns[self._column_of[slot.name, slot.index, _choices(slot.parameter)]]

    def _map(self, subspace: Subspace) -> _Map:
        if subspace.index not in self._maps:
            if len(self._maps) >= MAX_CACHED_SUBSPACES:
                self._maps.clear()
            self._maps[subspace.index] = self._build_map(subspace)
        return self._maps[subspace.index]

    def _build_map(self, subspace: Subspace) -> _Map:
        free = [(at, slot, self._column(slot)) for at, slot in enumerate(subspace.free)]
        numbers = [(at, column.start) for at, _, column in free if not column.values]
        choices = [(at, c.start, c.width - 1) for at, _, c in free if c.values]
        return _Map(
            self._fixed_features(subspace),
            self._active_gates(subspace),
            *(torch.tensor(part, dtype=torch.long) for part in _columns_of(numbers, 2)),
            *(torch.tensor(part, dtype=torch.long) for part in _columns_of(choices, 3)),
        )

    def _fixed_features(self, subspace: Subspace) -> Tensor:
        features = np.zeros(self.n_features)
        for slot in subspace.slots:
            if not slot.is_fixed:
                continue
            column = self._column(slot)
            if column.values:
                features[column.start + slot.parameter.level_of(slot.value)] = ONE_HOT
            else:
                features[column.start] = slot.parameter.to_unit(slot.value) - 0.5
        return torch.from_numpy(features)

    def _active_gates(self, subspace: Subspace) -> Tensor:
        active = np.zeros(1 + len(self.units) + len(self.decisions), dtype=bool)
        active[0] = True
        for slot in subspace.slots:
            if slot.is_fixed and not slot.index:
                key = slot.name, slot.index, _choices(slot.parameter)
                active[self.decision_gate(self.decisions.index(self._column_of[key]))] = True
            else:
                active[self.unit_gate(self._unit_of[slot.branch, slot.index])] = True
        return torch.from_numpy(active)


def _fill(plan: _Map, x: Tensor) -> Tensor:
    features = plan.fixed.expand(len(x), -1).index_copy(
        1, plan.number_to, x[:, plan.number_from] - 0.5
    )
    if len(plan.choice_from):
        levels = (x[:, plan.choice_from].detach() * plan.choice_top).round().long()
        features = features.scatter(1, plan.choice_start + levels, ONE_HOT)
    return features


def _columns_of(rows: Sequence[tuple[int, ...]], n: int) -> list[list[int]]:
    return [[row[at] for row in rows] for at in range(n)]


def _choices(parameter: Parameter) -> tuple[Value, ...]:
    """The values that get a one-hot code: those of choices and of short structural ranges."""
    is_short = parameter.is_structural and parameter.n_levels <= MAX_ONE_HOT_LEVELS
    if is_short or not parameter.is_ordered:
        return tuple(parameter.value_at(level) for level in range(parameter.n_levels))
    return ()
