"""Tabulation of a problem: values of random configs, kept in its store.

Config k depends on (seed, k) alone: a table can be stopped, continued and extended, and is the same
for any number of processes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from nasbo.bench.problem import Problem
from nasbo.bench.problems import find_entry, make_problem
from nasbo.errors import NasboError


@dataclass(frozen=True)
class Tabulated:
    """Result of a tabulation.

    Attributes:
        values: of the drawn configs, in their order.
        seconds: CPU seconds of each evaluation in the store.
    """

    path: Path
    values: tuple[float, ...]
    seconds: tuple[float, ...]

    def __str__(self) -> str:
        low, middle, high = np.quantile(self.values, [0.0, 0.5, 1.0])
        usual, long = np.quantile(self.seconds, [0.5, 0.95])
        return (
            f"{self.path}: {len(self.values)} configs, values {low:.4g} to {high:.4g}, "
            f"median {middle:.4g}; {usual:.2f} s per evaluation (p95 {long:.2f} s)"
        )


def tabulate(
    name: str,
    n: int,
    seed: int = 0,
    n_processes: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> Tabulated:
    """Evaluate `n` random configs of a problem, using the values in its store.

    Args:
        progress: called after each evaluation.

    Raises:
        NasboError: the problem has no store, or its requirements are not met.
    """
    entry = find_entry(name)
    if entry.store is None:
        raise NasboError(f"{name} answers within milliseconds: there is nothing to tabulate")
    entry.check()
    values: dict[int, float] = {}
    with ProcessPoolExecutor(n_processes, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(evaluate_one, name, seed, k): k for k in range(n)}
        try:
            for done in as_completed(running):
                values[running[done]] = done.result()
                progress()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    store = entry.store()
    seconds = tuple(result.seconds for result in store.results())
    return Tabulated(store.path, tuple(values[k] for k in range(n)), seconds)


def evaluate_one(name: str, seed: int, k: int) -> float:
    """Draw config k, evaluate it and store its value."""
    problem, rng = _problem(name), np.random.default_rng((seed, k))
    return problem.evaluate(problem.space.sample(rng), rng)


@lru_cache(maxsize=1)
def _problem(name: str) -> Problem:
    return make_problem(name)
