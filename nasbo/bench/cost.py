"""CPU time per suggestion, by method and size of the history."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from nasbo.bench.addtree_regression import SMALL_BALANCED
from nasbo.errors import NasboError
from nasbo.methods import METHODS
from nasbo.search import Search
from nasbo.space import Config, Space, load_space

SIZES = (50, 200)
REPEATS = 5
PACKAGES = {"smac": "smac", "tpe": "optuna"}
"""Optional packages that methods need."""


@dataclass(frozen=True)
class Cost:
    """CPU time of one suggestion of a method.

    Attributes:
        method: its name.
        seconds: CPU seconds by the size of the history, median of several suggestions.
    """

    method: str
    seconds: dict[int, float]

    @property
    def growth(self) -> float:
        """Ratio of the cost at the largest history to that at the smallest."""
        return self.seconds[max(self.seconds)] / self.seconds[min(self.seconds)]


def installed_methods() -> list[str]:
    """nasbo's methods whose packages are installed, by name."""
    return sorted(n for n in METHODS if n not in PACKAGES or find_spec(PACKAGES[n]) is not None)


def measure_costs(
    methods: Sequence[str],
    space: str | dict[str, Any] = SMALL_BALANCED,
    sizes: Sequence[int] = SIZES,
    repeats: int = REPEATS,
    progress: Callable[[str], None] = lambda line: None,
) -> list[Cost]:
    """Time single suggestions, with histories spread evenly over the subspaces.

    Methods and sizes alternate, so that other load on the machine affects all alike.
    Child processes of a method count, too. One untimed suggestion of each method
    comes first, for its imports.

    Args:
        methods: their names.
        space: name, file or document of the space; by default that of Jenatton's small function.
        sizes: number of results in the history.
        repeats: number of timed suggestions per method and size, each with a history of its own.
        progress: called with a line after each round of measurements.
    """
    if repeats < 1 or len(sizes) < 1 or min(sizes) < 2:
        raise NasboError(f"repeats >= 1 and sizes >= 2 must hold, but got {repeats} and {sizes}")
    tree = load_space(space)
    for method in methods:
        _suggest(_searched(tree, method, min(sizes), seed=repeats))
    seconds: dict[tuple[str, int], list[float]] = {}
    for seed in range(repeats):
        for method in methods:
            for size in sizes:
                spent = _suggest(_searched(tree, method, size, seed))
                seconds.setdefault((method, size), []).append(spent)
        progress(f"round {seed + 1} of {repeats}")
    return [
        Cost(method, {size: statistics.median(seconds[method, size]) for size in sizes})
        for method in methods
    ]


def table(costs: Sequence[Cost]) -> list[str]:
    """Lines of text: one method per line, the most expensive last."""
    sizes = sorted(costs[0].seconds)
    head = "".join(f"{f'n = {size}':>12}" for size in sizes)
    lines = [f"{'method':<14}{head}{'growth':>10}"]
    for cost in sorted(costs, key=lambda one: one.seconds[sizes[-1]]):
        cells = "".join(f"{cost.seconds[size]:>12.4f}" for size in sizes)
        lines.append(f"{cost.method:<14}{cells}{f'x {cost.growth:.2f}':>10}")
    return lines


def _searched(space: Space, method: str, n: int, seed: int) -> Search:
    """A search with ``n`` results, in subspaces taken in turns."""
    search = Search(space, method=method, mode="min", seed=seed)
    rng = np.random.default_rng([seed, n])
    start = 0 if space.is_listable else int(rng.integers(space.n_subspaces))
    step = max(1, space.n_subspaces // n)
    for at in range(n):
        subspace = space.subspace((start + at * step) % space.n_subspaces)
        config = subspace.sample_config(rng)
        search.observe(config, bowl(space, config))
    return search


def bowl(space: Space, config: Config) -> float:
    """Quadratic in the unit cube, with its own optimum and offset in each subspace."""
    subspace = space.subspace_of(config)
    x = subspace.encode(config)
    return float(((x - 0.3 - 0.1 * (subspace.index % 4)) ** 2).sum()) + 0.1 * (subspace.index % 7)


def _suggest(search: Search) -> float:
    """CPU seconds of one suggestion, including child processes."""
    before = _cpu_seconds()
    search.ask(1)
    return _cpu_seconds() - before


def _cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
