"""Configs of another package's multi-fidelity search, each trained in several stretches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nasbo.bench.curves.ledger import Ledger
from nasbo.bench.problem import Config, Problem
from nasbo.history import config_key
from nasbo.space.flat import from_flat


class Members:
    """Suggestions of a package as numbered configs of the problem, on one worker.

    On a pool, a suggestion is replaced by the nearest unused config. The package is told its value
    under the suggested config, because its brackets know only the config that it suggested.

    Args:
        problem: with learning curves.
        ledger: record of all trained steps.
    """

    def __init__(self, problem: Problem, ledger: Ledger) -> None:
        self._problem, self._ledger = problem, ledger
        self._members: dict[str, tuple[int, Config]] = {}
        self._reached: dict[int, tuple[int, float]] = {}
        self._used: set[str] = set()
        self._now = 0

    def find(self, proposed: Mapping[str, Any]) -> tuple[int, Config] | None:
        """Number and config for a suggestion of flat values; none if the pool is used up."""
        config = from_flat(self._problem.space, dict(proposed))
        key = config_key(config)
        if key not in self._members:
            snap = self._problem.snap
            member = config if snap is None else snap(config, self._used)
            if member is None:
                return None
            self._used.add(config_key(member))
            self._members[key] = (len(self._members), member)
        return self._members[key]

    def train(self, number: int, config: Config, until: int) -> float:
        """Continue the training of a config up to a step or the budget; returns its value there."""
        start, value = self._reached.get(number, (0, float("nan")))
        for step in range(start + 1, until + 1):
            if self._ledger.is_spent:
                break
            self._now += 1
            value = self._ledger.train(number, config, step, self._now)
            self._reached[number] = (step, value)
        self._ledger.end(number, self._reached[number][0], value, self._now)
        return value
