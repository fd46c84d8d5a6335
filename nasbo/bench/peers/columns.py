"""Encoding of a space for BoTorch's hierarchical models: matrix columns and their dependencies.

The form in which BoTorch's hierarchical models want a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nasbo.space import Coordinate, Parameter, Space, Subspace
from nasbo.space.walk import ROOT, Key, child_keys
from nasbo.surrogates.base import Batches

Dependencies = dict[int, dict[int | float, list[int]]]


@dataclass(frozen=True)
class Condition:
    """A value of a column under which other columns exist."""

    column: int
    value: float


class TreeColumns:
    """Columns of a space and their dependencies.

    A number has one column, scaled to [0, 1]. A plain choice has one column per value (a
    single one for two values). A structural parameter has one column with its level, scaled to
    [0, 1]. A repeated list of low to high elements has a flag for each element beyond low,
    each under the previous one.

    Attributes:
        dependencies: parent's column -> value -> columns that exist under it.
        n_columns: number of columns.
    """

    def __init__(self, space: Space) -> None:
        self.dependencies: Dependencies = {}
        self.n_columns = 0
        self._starts: dict[tuple[str, Key], int] = {}
        self._group(space.parameters, ROOT, None)

    def rows(self, batches: Batches) -> Tensor:
        """Rows of any subspaces as a matrix, shape (n, n_columns),
        differentiable in the numbers.
        """
        return torch.cat([self._rows(subspace, x) for subspace, x in batches])

    def _rows(self, subspace: Subspace, x: Tensor) -> Tensor:
        columns = [x.new_zeros(len(x)) for _ in range(self.n_columns)]
        for coordinate in subspace.coordinates:
            if coordinate.is_fixed:
                for column, value in self._fixed(coordinate):
                    columns[column] = x.new_full((len(x),), value)
        for place, coordinate in enumerate(subspace.free):
            start = self._starts[coordinate.name, (coordinate.branch, coordinate.index)]
            width = _width(coordinate.parameter)
            if width == 1:
                columns[start] = x[:, place]
                continue
            levels = (x[:, place].detach() * (width - 1)).round()
            for level in range(width):
                columns[start + level] = (levels == level).to(x.dtype)
        return torch.stack(columns, 1)

    def _fixed(self, coordinate: Coordinate) -> list[tuple[int, float]]:
        parameter = coordinate.parameter
        start = self._starts[coordinate.name, (coordinate.branch, coordinate.index)]
        level = parameter.level_of(coordinate.value)
        if parameter.repeated:
            n_flags = parameter.n_levels - 1
            return [(start + at, 1.0 if at < level else 0.0) for at in range(n_flags)]
        return [(start, _unit(parameter, level))]

    def _group(self, group: Sequence[Parameter], key: Key, above: Condition | None) -> None:
        for parameter in group:
            self._starts[parameter.name, key] = self.n_columns
            if parameter.repeated:
                self._repeated(parameter, key, above)
            elif parameter.is_structural:
                column = self._add(above)
                for branch in parameter.branches:
                    level = parameter.level_of(branch.value)
                    (child,) = child_keys(parameter, level, key)
                    here = Condition(column, _unit(parameter, level))
                    self._group(branch.parameters, child, here)
            else:
                for _ in range(_width(parameter)):
                    self._add(above)

    def _repeated(self, parameter: Parameter, key: Key, above: Condition | None) -> None:
        flags = [self._add(above)] if parameter.n_levels > 1 else []
        while len(flags) < parameter.n_levels - 1:
            flags.append(self._add(Condition(flags[-1], 1.0)))
        for child in child_keys(parameter, parameter.n_levels - 1, key):
            beyond = child[1] - parameter.n_repeats(0)
            here = above if beyond <= 0 else Condition(flags[beyond - 1], 1.0)
            self._group(parameter.repeated, child, here)

    def _add(self, above: Condition | None) -> int:
        column = self.n_columns
        self.n_columns += 1
        if above is not None:
            children = self.dependencies.setdefault(above.column, {})
            children.setdefault(above.value, []).append(column)
        return column


def _width(parameter: Parameter) -> int:
    return parameter.n_levels if not parameter.is_ordered and parameter.n_levels > 2 else 1


def _unit(parameter: Parameter, level: int) -> float:
    return level / max(parameter.n_levels - 1, 1)
