"""Conditions of parameters, inferred from configs in which some of them exist.

Each parameter that is not in all configs gets a decision tree over those that were decided before
it. Splits are chosen by information gain, less what a split with so many parts would gain by
chance; thresholds alone split numbers. What no earlier parameter explains is said to exist.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nasbo.interchange.grow import MAX_LEVELS
from nasbo.interchange.listing import Alternatives, Condition, united
from nasbo.space import Parameter

Codes = Mapping[str, float]
"""What a config has, in the order of deciding: levels of parameters, floats as they are."""
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Inferred:
    """When parameters exist; those in ``unexplained`` are in fewer configs than that."""

    exists: dict[str, Alternatives]
    unexplained: tuple[str, ...]


def infer(configs: Sequence[Codes], parameters: Mapping[str, Parameter]) -> Inferred:
    """When each of the parameters exists."""
    table = _Table(configs, parameters)
    exists = {name: united(table.explain(column)) for column, name in enumerate(parameters)}
    return Inferred(exists, tuple(dict.fromkeys(table.unexplained)))


@dataclass(frozen=True)
class _Split:
    """Parts of the levels of a parameter, ``None`` for floats, with the rows in each."""

    column: int
    parts: list[tuple[frozenset[int], Rows]]


@dataclass(frozen=True)
class _Test:
    """A split that could be made.

    Attributes:
        rows: of the configs that have the parameter.
        values: of the parameter, sorted; ``inverse`` has the place of each row's.
        counts: of configs without and with the explained one by value, shape (n_values, 2).
        cut: where values are cut in two; ``None`` where each is a part.
        score: bits that are gained.
    """

    column: int
    rows: Rows
    values: NDArray[np.float64]
    inverse: Rows
    counts: NDArray[np.float64]
    cut: int | None
    score: float


class _Table:
    """Configs as a matrix, shape (n_configs, n_parameters), with NaN where nothing exists."""

    def __init__(self, configs: Sequence[Codes], parameters: Mapping[str, Parameter]) -> None:
        self.names, self.parameters = list(parameters), list(parameters.values())
        self.unexplained: list[str] = []
        columns = {name: at for at, name in enumerate(self.names)}
        shape = len(configs), len(columns)
        self.codes, places = np.full(shape, np.nan), np.full(shape, np.nan)
        for row, config in enumerate(configs):
            for place, (name, code) in enumerate(config.items()):
                self.codes[row, columns[name]] = code
                places[row, columns[name]] = place
        self.exists = ~np.isnan(self.codes)
        self.places = places

    def explain(self, column: int) -> list[tuple[Condition, ...]]:
        """The alternatives under which a parameter exists."""
        everything = np.arange(len(self.codes))
        earlier = [
            at for at in range(len(self.names)) if at != column and self._is_before(at, column)
        ]
        return [
            tuple(Condition(self.names[at], levels) for at, levels in path.items())
            for path in self._paths(column, everything, earlier)
        ]

    def _is_before(self, one: int, other: int) -> bool:
        both = self.exists[:, one] & self.exists[:, other]
        return bool(np.all(self.places[both, one] < self.places[both, other]))

    def _paths(
        self, column: int, rows: Rows, earlier: Sequence[int]
    ) -> list[dict[int, frozenset[int]]]:
        """Paths of the decision tree that end where the parameter exists."""
        exists = self.exists[rows, column]
        if exists.all() or not exists.any():
            return [{}] if exists.any() else []
        split = self._best_split(exists, rows, earlier)
        if split is None:
            self.unexplained.append(self.names[column])
            return [{}]
        found = []
        for levels, part in split.parts:
            for path in self._paths(column, part, earlier):
                inner = path.get(split.column)
                own = levels if inner is None else levels & inner
                found.append({split.column: own, **path, split.column: own})
        return found

    def _best_split(
        self, exists: NDArray[np.bool_], rows: Rows, earlier: Sequence[int]
    ) -> _Split | None:
        tests = [test for at in earlier if (test := self._test(at, exists, rows)) is not None]
        best = max(tests, key=lambda test: test.score, default=None)
        return None if best is None else self._split(best)

    def _test(self, at: int, exists: NDArray[np.bool_], rows: Rows) -> _Test | None:
        """What is gained by a split on a parameter; ``None`` where it decides nothing.

        Configs without it must be without the explained one, too, and others must differ: else
        it is not its value that decides.
        """
        has = self.exists[rows, at]
        if exists[~has].any() or exists[has].all():
            return None
        values, inverse = np.unique(self.codes[rows[has], at], return_inverse=True)
        if len(values) < 2:
            return None
        counts = np.zeros((len(values), 2))
        np.add.at(counts, (inverse, exists[has].astype(int)), 1)
        bits, cut = _gain(counts, self.parameters[at].is_ordered, n_without=int((~has).sum()))
        return _Test(at, rows[has], values, inverse, counts, cut, bits)

    def _split(self, test: _Test) -> _Split:
        parameter, rows, values = self.parameters[test.column], test.rows, test.values
        if test.cut is None:  # levels of a choice, those that decide alike together
            kinds = [_kind(level, test.counts[level]) for level in range(len(values))]
            groups = [
                [v for v, k in enumerate(kinds) if k == kind] for kind in dict.fromkeys(kinds)
            ]
            parts = [
                (frozenset(int(values[v]) for v in group), rows[np.isin(test.inverse, group)])
                for group in groups
            ]
            return _Split(test.column, parts)
        low, high = rows[test.inverse < test.cut], rows[test.inverse >= test.cut]
        if parameter.is_continuous or parameter.n_levels > MAX_LEVELS:
            return _Split(test.column, [(frozenset(), low), (frozenset(), high)])
        # Levels between those that were seen belong to the nearer one.
        border = math.floor((values[test.cut - 1] + values[test.cut]) / 2)
        every = frozenset(range(parameter.n_levels))
        below = frozenset(level for level in every if level <= border)
        return _Split(test.column, [(below, low), (every - below, high)])


def _kind(level: int, counts: NDArray[np.float64]) -> tuple[str, int]:
    if counts[0] and counts[1]:
        return "mixed", level
    return ("exists", 0) if counts[1] else ("absent", 0)


def _gain(
    counts: NDArray[np.float64], is_ordered: bool, n_without: int
) -> tuple[float, int | None]:
    """Bits that a split gains beyond chance, and where it cuts.

    Args:
        counts: of configs without and with the explained one by value, shape (n_values, 2).
        is_ordered: whether it is cut in two; else each value is a part.
        n_without: configs that have neither of the two: a part of their own.
    """
    n = counts.sum() + n_without
    whole = _bits(counts.sum(0)[None] + [n_without, 0])[0]
    chance = 0.5 * math.log2(n + 1) * (n_without > 0)
    if not is_ordered:
        chance += 0.5 * (len(counts) - 1) * math.log2(n + 1)
        return float(whole - _bits(counts).sum() - chance), None
    below = counts.cumsum(0)[:-1]
    rest = _bits(below) + _bits(counts.sum(0) - below)
    cut = int(np.argmin(rest))
    chance += 0.5 * math.log2(n + 1) + math.log2(len(counts))
    return float(whole - rest[cut] - chance), cut + 1


def _bits(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Entropy times the number of configs, shape (n,), of counts, shape (n, 2)."""
    total = counts.sum(1, keepdims=True)
    share = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
    logs = np.log2(share, out=np.zeros_like(share), where=share > 0)
    return np.asarray(-(counts * logs).sum(1))
