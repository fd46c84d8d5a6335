"""Normalised regret, comparable between problems.

0 is the optimum, or the best value of any run if that is unknown. 1 is the median of random search
at the end of its trials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nasbo.bench.results import Results
from nasbo.bench.statistics import TIE_DIGITS

Array = NDArray[np.float64]
REFERENCE = "random"
LOG_FLOOR = 1e-9


@dataclass(frozen=True)
class Yardstick:
    """Scale of a problem's regrets.

    Attributes:
        best: the value of regret 0.
        unit: the difference that counts as regret 1.
        is_optimum: whether ``best`` is the known optimum and not just the best value found.
        reference: what has regret 1.
    """

    best: float
    unit: float
    is_optimum: bool
    reference: str

    def regret(self, values: Array) -> Array:
        """Normalised regrets of true values."""
        gaps: Array = np.maximum(np.asarray(values, dtype=np.float64) - self.best, 0.0)
        return gaps / self.unit

    def log10(self, values: Array) -> Array:
        """log10 of the unnormalised regrets, at least that of 1e-9."""
        logs: Array = np.log10(np.maximum(np.asarray(values) - self.best, LOG_FLOOR))
        return logs


def yardstick(results: Results, problem: str) -> Yardstick:
    """The scale of a problem's regrets, from all of its runs, including hidden ones."""
    info = results.problems[problem]
    runs = results.on(problem)
    found = min(float(run.best.min()) for run in runs)
    best = found if info.optimum is None else info.optimum
    if not math.isfinite(best):
        return Yardstick(0.0, 1.0, False, "nothing, since all trials have failed")
    smallest = 10.0**-TIE_DIGITS * max(abs(best), 1e-12)
    random = [float(run.best[: info.trials + 1][-1]) for run in runs if run.method == REFERENCE]
    if random and math.inf > (unit := float(np.median(random)) - best) > smallest:
        return Yardstick(best, unit, info.optimum is not None, "random at the end")
    starts = [float(run.best[0]) for run in runs]
    unit = float(np.median(starts)) - best
    reason = "the design" if random else "the design (random was not run)"
    if not math.isfinite(unit):
        ends = [float(run.best[-1]) for run in runs]
        unit = float(np.median([end for end in ends if math.isfinite(end)] or [best])) - best
        reason = "the end of the runs that have found something"
    return Yardstick(best, max(unit, smallest), info.optimum is not None, reason)


def yardsticks(results: Results) -> dict[str, Yardstick]:
    """The scales of all problems."""
    return {problem: yardstick(results, problem) for problem in results.problems}


@dataclass(frozen=True)
class Pairs:
    """Regrets of several methods on the same problems and seeds.

    Attributes:
        methods: those that were run on every problem.
        regrets: after 0, 1, ... trials after the design, shape (pairs, methods, trials + 1).
        problems: of each pair.
        unranked: methods without a run on some of the problems.
    """

    methods: tuple[str, ...]
    regrets: Array
    problems: tuple[str, ...]
    unranked: tuple[str, ...]

    def by_problem(self, values: Array) -> Array:
        """Average values of pairs within each problem: (pairs, ...) to (problems, ...)."""
        owners = np.array(self.problems)
        return np.array([values[owners == name].mean(0) for name in dict.fromkeys(self.problems)])


def regret_pairs(
    results: Results, sticks: dict[str, Yardstick], problems: Sequence[str], trials: int
) -> Pairs:
    """The pairs of problem and seed that all methods can be compared on.

    Args:
        results: all runs.
        sticks: scales of the problems.
        problems: to use; those with fewer trials are left out.
        trials: length of the curves after the design.
    """
    long_enough = [name for name in problems if trials <= results.problems[name].trials]
    met = [set(results.contestants(name)) for name in long_enough]
    methods = tuple(m for m in results.methods if all(m in some for some in met))
    rows, owners = [], []
    for problem in long_enough if methods else ():
        for seed in results.seeds(problem, methods):
            curves = [results.runs[problem, m, seed].best[: trials + 1] for m in methods]
            rows.append(sticks[problem].regret(np.array(curves)))
            owners.append(problem)
    regrets = np.array(rows, dtype=np.float64).reshape(len(rows), len(methods), trials + 1)
    unranked = tuple(m for m in results.methods if m not in methods and any(m in s for s in met))
    return Pairs(methods, regrets, tuple(owners), unranked)
