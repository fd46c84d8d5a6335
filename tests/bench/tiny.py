"""Problems and methods for benchmarks that take seconds."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from nasbo.bench.pool import Pool
from nasbo.bench.problem import Curve, Problem
from nasbo.bench.problems import Entry
from nasbo.bench.problems.curves import curve_problem
from nasbo.bench.problems.parameters import real
from nasbo.methods import Method, Suggestion, Task
from nasbo.methods.random import RandomSearch
from nasbo.space import Space, load_space
from nasbo.testing import SPACES

Config = dict[str, Any]


def two_branches(config: Config) -> float:
    """Minimum 0.5 in the branch ``right`` at 0.25."""
    if config["top"] == "right":
        return 0.5 + (config["gamma"] - 0.25) ** 2
    return 1.0 + (0.5 if config["flag"] else 0.0)


def _noisy(config: Config, rng: np.random.Generator) -> float:
    return two_branches(config) + 0.1 * float(rng.standard_normal())


def plain_problem() -> Problem:
    """Without noise, optimum known."""
    space = load_space(SPACES["nested"])
    return Problem("plain", space, lambda c, rng: two_branches(c), optimum=0.5)


def noisy_problem() -> Problem:
    """With noise, optimum unknown."""
    return Problem("noisy", load_space(SPACES["nested"]), _noisy, truth=two_branches)


def broken_problem() -> Problem:
    """Raises at its first config of one branch."""

    def evaluate(config: Config, rng: np.random.Generator) -> float:
        if config["top"] == "left":
            raise ValueError("the left branch is broken")
        return two_branches(config)

    return Problem("broken", load_space(SPACES["nested"]), evaluate)


def deadly_problem() -> Problem:
    """Ends the process that evaluates it."""

    def evaluate(config: Config, rng: np.random.Generator) -> float:
        os._exit(7)

    return Problem("deadly", load_space(SPACES["nested"]), evaluate)


def finite_problem() -> Problem:
    """Five configs in all."""
    return Problem("finite", load_space(SPACES["finite"]), lambda c, rng: float(c.get("b", 3)))


N_STEPS = 18


def curved_problem() -> Problem:
    """With partial trainings: the value decreases with the steps to that of ``plain_problem``."""

    def at(config: Config, step: int, rng: np.random.Generator) -> float:
        return two_branches(config) + 1.0 / step - 1.0 / N_STEPS

    space = load_space(SPACES["nested"])
    curve = Curve(at, N_STEPS, lambda: [0.5, 0.7, 1.0, 1.5])
    return curve_problem("curved", space, curve)


def pool_problem() -> Problem:
    """Thirty configs of two numbers, whose sum is minimised."""
    table = np.random.default_rng(0).random((30, 2))
    pool = Pool(("a", "b"), lambda: table)
    space = load_space({name: real(0.0, 1.0) for name in pool.names})

    def at(config: Config, step: int, rng: np.random.Generator) -> float:
        return float(table[pool.row(config)].sum()) + 1.0 / step

    curve = Curve(at, N_STEPS, lambda: [float(row.sum()) + 1.0 / N_STEPS for row in table])
    return curve_problem("pool", space, curve, pool.snap)


PLAIN = Entry(plain_problem, "tree", "tuning", "no noise")
NOISY = Entry(noisy_problem, "noise", "held-out", "noise")


class Nearby(Method):
    """Steps around the best config: better than random, and cheap."""

    def __init__(self, space: Space, seed: int = 0, *, step: float = 0.1) -> None:
        super().__init__(space, seed)
        self.step = step

    def propose(self, task: Task) -> list[Suggestion]:
        best, _ = max(task.rows, key=lambda row: row[1])
        subspace = self.space.subspace(best.subspace)
        x = subspace.encode(best.config)
        moves = task.rng.normal(0, self.step, size=(task.n, len(x)))
        return [Suggestion(subspace.decode(point)) for point in subspace.snap(x + moves)]


class Failing(RandomSearch):
    """Its proposals raise: every trial after the design is a fallback."""

    def propose(self, task: Task) -> list[Suggestion]:
        raise ArithmeticError("no proposal")


def double(number: int) -> int:
    """Task of a worker: 2 raises, 3 dies."""
    if number == 2:
        raise ValueError("two is not wanted")
    if number == 3:
        os._exit(3)
    return 2 * number


def n_threads(task: int) -> str | None:
    """Number of threads that a worker may use."""
    return os.environ.get("OMP_NUM_THREADS")
