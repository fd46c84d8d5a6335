"""Subspaces: flat boxes for one set of structural choices, and their configs in the unit cube."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nasbo.space.parameter import Config, Parameter, Value, plain_text
from nasbo.space.walk import ROOT, Key, child_keys

Array = NDArray[np.float64]
Path = Mapping[Key, Sequence[int]]
"""Vertices on the path of a subspace, with the columns of ``x`` that belong to each."""

MAX_GRID = 256
"""Largest number of configs for which all are listed instead of a sample."""
CHANGE_CHOICE = 0.15
CHANGE_NUMBER = 0.7


@dataclass(frozen=True)
class Coordinate:
    """One active scalar of a subspace.

    Attributes:
        parameter: its node of the tree.
        index: 0 outside of lists, 1, 2, ... for the elements of a repeated parameter.
        parent: name of the parent parameter, "" at the root.
        branch: path of the branch that contains the parameter, e.g. ``kernel=poly``; coordinates of
            one subspace with equal (branch, index) form a unit, such as one block of a network.
        is_fixed: whether the subspace fixes the value (a structural parameter).
        value: the fixed value.
    """

    parameter: Parameter
    index: int = 0
    parent: str = ""
    branch: str = ""
    is_fixed: bool = False
    value: Value = None

    @property
    def name(self) -> str:
        return self.parameter.name

    @property
    def key(self) -> Key:
        """Its vertex in the tree."""
        return self.branch, self.index

    @property
    def label(self) -> str:
        """Name with its list index, e.g. ``kernel_size[2]``."""
        return f"{self.name}[{self.index}]" if self.index else self.name

    def value_in(self, config: Config) -> Value:
        """Its value in a config of the subspace."""
        value: Value = config[self.name][self.index - 1] if self.index else config[self.name]
        return value


@dataclass(frozen=True)
class Subspace:
    """A flat box: all structural parameters are fixed, the others are free.

    Attributes:
        index: its index in the space, 0 to ``n_subspaces - 1``.
        coordinates: all active scalars, structural ones included, in the order of the document.
        lengths: length of each list in a config, by parameter name.
    """

    index: int
    coordinates: tuple[Coordinate, ...]
    lengths: Mapping[str, int]

    @cached_property
    def free(self) -> tuple[Coordinate, ...]:
        """The free coordinates, in the order of the columns of ``x``."""
        return tuple(one for one in self.coordinates if not one.is_fixed)

    @cached_property
    def path(self) -> Path:
        """The vertices from the root to the leaves, also those without parameters.

        A root without parameters is left out, as all paths would share it; the
        others tell paths apart.
        """
        columns: dict[Key, list[int]] = {ROOT: []}
        for coordinate in self.coordinates:
            if coordinate.is_fixed:
                level = coordinate.parameter.level_of(coordinate.value)
                below = child_keys(coordinate.parameter, level, coordinate.key)
                columns |= {key: [] for key in below}
        for column, coordinate in enumerate(self.free):
            columns[coordinate.key].append(column)
        if not columns[ROOT]:
            del columns[ROOT]
        return columns

    @property
    def n_parameters(self) -> int:
        return len(self.coordinates)

    @property
    def n_free(self) -> int:
        return len(self.free)

    @cached_property
    def n_configs(self) -> int | None:
        """Number of configs; ``None`` if there is a float."""
        levels = [one.parameter.n_levels for one in self.free]
        return math.prod(levels) if all(levels) else None

    def all_configs(self) -> Iterator[Config]:
        """All configs of a subspace without floats."""
        parameters = [one.parameter for one in self.free]
        levels = (map(one.value_at, range(one.n_levels)) for one in parameters)
        return map(self._config, itertools.product(*levels))

    @cached_property
    def choices(self) -> Config:
        """The structural values, in the form of a config."""
        fixed = [one for one in self.coordinates if one.is_fixed]
        names = {one.name for one in fixed}
        lengths = {name: size for name, size in self.lengths.items() if name in names}
        return _assemble(fixed, [one.value for one in fixed], lengths)

    def _choice_texts(self) -> Iterator[str]:
        return (f"{plain_text(name)}={plain_text(value)}" for name, value in self.choices.items())

    @cached_property
    def id(self) -> str:
        """A readable id, unique in the space, e.g. ``algorithm=svm,kernel=rbf``."""
        return ",".join(self._choice_texts()) or "all"

    @property
    def first_choice(self) -> str:
        """The first structural value, e.g. ``algorithm=svm``: many subspaces share it."""
        return next(self._choice_texts(), "all")

    def decode(self, x: Sequence[float] | Array) -> Config:
        """The config of a row of the unit cube.

        Args:
            x: shape (n_free,); discrete values are rounded to the nearest level.
        """
        pairs = zip(self.free, x, strict=True)
        return self._config(one.parameter.from_unit(unit) for one, unit in pairs)

    def table(self, x: Array) -> dict[str, NDArray[Any]]:
        """The values of rows of the unit cube, shape (n, n_free), by parameter.

        Returns:
            Shape (n,), or (n, length) for lists, ``nan`` or ``None`` where an entry is absent.
        """
        columns = iter(zip(self.free, x.T, self._level_values, strict=True))
        found: dict[str, Any] = {
            name: np.full((len(x), size), None) for name, size in self.lengths.items()
        }
        for one in self.coordinates:
            values = np.full(len(x), one.value) if one.is_fixed else _values(*next(columns))
            if one.index:
                found[one.name][:, one.index - 1] = values
            else:
                found[one.name] = values
        return {name: _as_numbers(values) for name, values in found.items()}

    @cached_property
    def _level_values(self) -> list[NDArray[Any] | None]:
        """The values of each free coordinate by level; ``None`` where they are endless."""
        return [
            np.array([p.value_at(level) for level in range(p.n_levels)]) if p.n_levels else None
            for p in (one.parameter for one in self.free)
        ]

    def encode(self, config: Config) -> Array:
        """A config as a row of the unit cube, shape (n_free,)."""
        units = [one.parameter.to_unit(one.value_in(config)) for one in self.free]
        return np.array(units, dtype=np.float64)

    def sample_config(self, rng: Generator) -> Config:
        """A uniform random config of this subspace."""
        return self._config(one.parameter.sample(rng) for one in self.free)

    def _config(self, free_values: Iterable[Value]) -> Config:
        """The config with given values of the free coordinates."""
        values = iter(free_values)
        every = [one.value if one.is_fixed else next(values) for one in self.coordinates]
        return _assemble(self.coordinates, every, self.lengths)

    # Rows of the unit cube

    @cached_property
    def n_levels(self) -> NDArray[np.intp]:
        """Number of levels of each column of ``x``, 0 for floats, shape (n_free,)."""
        return np.array([one.parameter.n_levels for one in self.free], dtype=np.intp)

    @cached_property
    def is_ordered(self) -> NDArray[np.bool_]:
        """Which columns of ``x`` are not choices, shape (n_free,)."""
        return np.array([one.parameter.is_ordered for one in self.free], dtype=bool)

    @cached_property
    def smooth(self) -> NDArray[np.intp]:
        """Columns that are optimised by gradients: floats, and integers with many levels."""
        return np.flatnonzero([one.parameter.is_smooth for one in self.free])

    @cached_property
    def discrete(self) -> NDArray[np.intp]:
        """Columns with several levels."""
        return np.flatnonzero(self.n_levels > 1)

    @cached_property
    def _uneven(self) -> list[int]:
        return [at for at, one in enumerate(self.free) if not one.parameter.is_even]

    def candidates(self, n: int, rng: Generator) -> Array:
        """Uniform random rows, shape (n, n_free); the whole grid if it is small."""
        if self.n_configs is None or self.n_configs > MAX_GRID:
            return self.sample(n, rng)
        grid = itertools.product(*(one.parameter.units for one in self.free))
        return self.snap(np.array(list(grid), dtype=np.float64))

    def sample(self, n: int, rng: Generator) -> Array:
        """Uniform random rows, with discrete columns on their levels, shape (n, n_free)."""
        u = rng.random((n, self.n_free))
        top = np.maximum(self.n_levels - 1, 1)
        levels = np.minimum(np.floor(u * self.n_levels), self.n_levels - 1) / top
        levels[:, self._uneven] = u[:, self._uneven]
        return self.snap(np.where(self.n_levels > 0, levels, u))

    def snap(self, x: Array) -> Array:
        """Round rows, shape (n, n_free), to the nearest valid ones."""
        x = np.clip(x, 0.0, 1.0)
        top = np.maximum(self.n_levels - 1, 1)
        snapped = np.where(self.n_levels > 0, np.round(x * top) / top, x)
        for column in self._uneven:
            snapped[:, column] = self.free[column].parameter.snap(x[:, column])
        return snapped

    def perturb(self, x: Array, rng: Generator) -> Array:
        """Perturb rows at random, with step sizes over several orders of magnitude."""
        sd = 10.0 ** rng.uniform(-2.5, -0.6, size=(len(x), 1))
        moved = x + sd * rng.standard_normal(x.shape) * (rng.random(x.shape) < CHANGE_NUMBER)
        redrawn = np.where(rng.random(x.shape) < CHANGE_CHOICE, rng.random(x.shape), x)
        return self.snap(np.where(self.is_ordered, moved, redrawn))

    def neighbours(self, row: Array) -> Array:
        """All rows with another value of one choice, or one number moved
        by one level: (n, n_free).
        """
        rows = [np.zeros((0, self.n_free))]
        for column in self.discrete:
            parameter = self.free[column].parameter
            here = parameter.level_of(parameter.from_unit(row[column]))
            levels = (here - 1, here + 1) if parameter.is_ordered else range(parameter.n_levels)
            others = [
                level for level in levels if level != here and 0 <= level < parameter.n_levels
            ]
            changed = np.repeat(row[None], len(others), 0)
            changed[:, column] = [parameter.to_unit(parameter.value_at(level)) for level in others]
            rows.append(changed)
        return self.snap(np.concatenate(rows))

    def project(self, other: Subspace, row: Array, n: int, rng: Generator) -> Array:
        """``n`` random rows with the values of another subspace's row for equal parameters."""
        rows = self.candidates(n, rng)
        columns = {(one.name, one.index): at for at, one in enumerate(self.free)}
        for at, coordinate in enumerate(other.free):
            column = columns.get((coordinate.name, coordinate.index))
            if column is not None and coordinate.parameter == self.free[column].parameter:
                rows[:, column] = row[at]
        return rows


def _values(one: Coordinate, column: Array, by_level: NDArray[Any] | None) -> NDArray[Any]:
    """The values of a coordinate at places in [0, 1], shape (n,)."""
    parameter = one.parameter
    if by_level is None:
        return np.array([parameter.from_unit(unit) for unit in column])
    if not parameter.is_even:
        levels = np.abs(column[:, None] - parameter.units).argmin(1)
    else:
        levels = np.round(np.clip(column, 0.0, 1.0) * (len(by_level) - 1)).astype(np.intp)
    values: NDArray[Any] = by_level[levels]
    return values


def _as_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Values as numbers, ``nan`` where there is none, if that is what they are."""
    if values.dtype != object:
        return values
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return values


def _assemble(
    coordinates: Sequence[Coordinate], values: Sequence[Value], lengths: Mapping[str, int]
) -> Config:
    """A config from coordinates and values; lists have ``None`` for absent elements."""
    lists: dict[str, list[Value]] = {name: [None] * size for name, size in lengths.items()}
    config: Config = {}
    for coordinate, value in zip(coordinates, values, strict=True):
        if not coordinate.index:
            config[coordinate.name] = value
            continue
        lists[coordinate.name][coordinate.index - 1] = value
        config[coordinate.name] = lists[coordinate.name]
    for name, entries in lists.items():
        config.setdefault(name, entries)
    return config
