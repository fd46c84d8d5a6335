"""Ledger of a search by cost: trained steps, and the config to be returned at each of them."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np

from nasbo.bench.problem import Config, Curve, Problem
from nasbo.errors import NasboError

PER_TRAINING = 4
"""Grid points of cost per full training."""
_NOISE = 7919


def curve_of(problem: Problem) -> Curve:
    """The learning curves of a problem; raises ``NasboError`` if it has none."""
    if problem.curve is None:
        raise NasboError(f"{problem.name} has no learning curves: it cannot be trained in part")
    return problem.curve


@dataclass(frozen=True)
class _Mark:
    """Best configs after a number of steps, by their numbers."""

    n_steps: int
    seen: int
    returned: int | None
    time: int

    @property
    def best(self) -> int:
        """The config to be returned; the best seen until there is one."""
        return self.seen if self.returned is None else self.returned


class Ledger:
    """Trains step by step, and records the cost and the config to be returned.

    Attributes:
        n_steps: number of steps of a full training.
        n_spent: number of steps trained so far, over all workers.
        returned: number of the config that the search would return now; ``None`` until there is
            one.
    """

    def __init__(self, problem: Problem, budget: int, seed: int) -> None:
        self._problem, self._seed = problem, seed
        self._curve = curve_of(problem)
        self.n_steps = self._curve.n_steps
        self.n_spent, self._n_budget = 0, budget * self.n_steps
        self.returned: int | None = None
        self._best_seen, self._seen = math.inf, 0
        self._configs: dict[int, Config] = {}
        self._reached: dict[int, int] = {}
        self._ended: dict[int, tuple[int, float]] = {}
        self._marks: list[_Mark] = []

    @property
    def is_spent(self) -> bool:
        """Whether the budget allows no further step."""
        return self.n_spent >= self._n_budget

    def train(self, number: int, config: Config, step: int, time: int) -> float:
        """The value of a config after one more step, which ends at ``time``; may be NaN.

        Its noise depends on the seed, the config's number and the step only.
        """
        rng = np.random.default_rng([_NOISE, self._seed, number, step])
        value = float(self._curve.at(config, step, rng))
        self.n_spent += 1
        self._configs[number] = config
        self._reached[number] = max(step, self._reached.get(number, 0))
        if value < self._best_seen:
            self._best_seen, self._seen = value, number
        self._mark(time)
        return value

    def end(self, number: int, step: int, value: float, time: int) -> None:
        """Record the end or pause of a training, for searches without a history.

        The returned config is the best of those that were trained furthest.
        """
        if math.isfinite(value):
            self._ended[number] = (step, value)
            furthest = max(step for step, _ in self._ended.values())
            known = [(v, n) for n, (step, v) in self._ended.items() if step == furthest]
            self.returned = min(known)[1]
        self._mark(time)

    def take(self, returned: int | None, time: int) -> None:
        """Record which config the search would return from now on."""
        self.returned = returned
        self._mark(time)

    def _mark(self, time: int) -> None:
        if self._marks and self._marks[-1].n_steps == self.n_spent:
            self._marks.pop()
        self._marks.append(_Mark(self.n_spent, self._seen, self.returned, time))

    def columns(self, budget: int) -> dict[str, Any]:
        """Columns for a cell's record, on a grid of costs in quarters of a full training.

        Returns:
            ``returned`` and ``seen``: true values of the config that the search would return and of
            the config with the best value at any step; ``clock``: time in full trainings;
            ``configs`` with the number of ``steps`` of each.
        """
        costs = [at / PER_TRAINING for at in range(1, budget * PER_TRAINING + 1)]
        marks = [self._at(cost) for cost in costs]
        numbers = sorted(self._configs)
        return {
            "costs": costs,
            "returned": [None if mark is None else self._true(mark.best) for mark in marks],
            "seen": [None if mark is None else self._true(mark.seen) for mark in marks],
            "clock": [None if m is None else round(m.time / self.n_steps, 4) for m in marks],
            "spent": self.n_spent / self.n_steps,
            "numbers": numbers,
            "configs": [self._configs[number] for number in numbers],
            "steps": [self._reached[number] for number in numbers],
        }

    def _at(self, cost: float) -> _Mark | None:
        """The last mark up to a cost in full trainings."""
        n_steps = math.floor(cost * self.n_steps + 1e-9)
        place = bisect_right(self._marks, n_steps, key=lambda mark: mark.n_steps)
        return self._marks[place - 1] if place else None

    def _true(self, number: int) -> float | None:
        value = self._problem.true_value(self._configs[number])
        return value if math.isfinite(value) else None
