"""Pools: problems in which only the configs of a table have values, and searches on them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nasbo.bench.problem import Config, Problem
from nasbo.errors import NasboError
from nasbo.history import config_key
from nasbo.methods.base import Suggestion
from nasbo.search import Decider, LocalDecider, Search


@dataclass(frozen=True)
class Pool:
    """Finite set of configs in the unit cube.

    Attributes:
        names: of the parameters.
        read: returns the configs, shape (n, d); called when they are first needed.
    """

    names: Sequence[str]
    read: Callable[[], NDArray[np.float64]]

    def row(self, config: Config) -> int:
        """The row of a config; raises ``NasboError`` if it is not in the pool."""
        found = self._rows.get(config_key(config))
        if found is None:
            raise NasboError(f"only configs of the pool have values, got {config}")
        return found

    def snap(self, config: Config, used: Collection[str]) -> Config | None:
        """The nearest unused config by Euclidean distance; ``None`` if all are used."""
        at = np.array([config[name] for name in self.names])
        distances = ((self.read() - at) ** 2).sum(1)
        for row in np.argsort(distances, kind="stable"):
            key = self._keys[int(row)]
            if key not in used:
                return self._config(int(row))
        return None

    def _config(self, row: int) -> Config:
        return dict(zip(self.names, self.read()[row].tolist(), strict=True))

    @cached_property
    def _keys(self) -> list[str]:
        return [config_key(self._config(row)) for row in range(len(self.read()))]

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {key: row for row, key in reversed(list(enumerate(self._keys)))}


def snapped(
    problem: Problem, suggestions: Sequence[Suggestion], used: Collection[str]
) -> list[Suggestion]:
    """Suggestions mapped to distinct configs of the problem's pool;
    fewer if the pool is used up.
    """
    if problem.snap is None:
        return list(suggestions)
    taken, found = set(used), []
    for suggestion in suggestions:
        config = problem.snap(suggestion.config, taken)
        if config is not None:
            taken.add(config_key(config))
            found.append(replace(suggestion, config=config))
    return found


class PoolDecider(LocalDecider):
    """Decider that calls the method in this process and maps its
    proposals to configs of the pool.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self._problem = problem

    def begin(self, search: Search, n: int) -> None:
        suggestions, seconds = search.decide(n)
        self._decided = snapped(self._problem, suggestions, search.history.keys), seconds


def decider_of(problem: Problem) -> Decider:
    """The decider for searches on a problem."""
    return LocalDecider() if problem.snap is None else PoolDecider(problem)
