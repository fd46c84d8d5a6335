"""Forecast of a sweep: sizes and training times of random configs, and its duration.

Configs are drawn as in the initial design; the method's later choices may
be more or less expensive.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nasbo.history import Run, Rungs
from nasbo.limits import Describe, Limits, numbers_of
from nasbo.methods import design_size
from nasbo.resources import room_here
from nasbo.search import Driver, Schedule, Search
from nasbo.search.schedule import is_crowded
from nasbo.space import Space
from nasbo.sweeps.settings import Sweep
from nasbo.trainer import load_trainer

SECONDS = "seconds"
SHARES = {"min": 0.0, "10 %": 0.1, "median": 0.5, "90 %": 0.9, "max": 1.0}
N_SIMULATED = 50


@dataclass(frozen=True)
class Forecast:
    """Predicted properties of trials.

    Attributes:
        n_drawn: number of random configs.
        n_allowed: number of those that satisfy the constraints.
        numbers: numbers of the allowed configs by name, if all of them have them.
    """

    n_drawn: int
    n_allowed: int
    numbers: dict[str, list[float]]

    def shares(self, name: str) -> dict[str, float]:
        """Quantiles of a number by name: smallest, median, largest ..."""
        values = np.quantile(self.numbers[name], list(SHARES.values()))
        return dict(zip(SHARES, map(float, values), strict=True))


@dataclass(frozen=True)
class Length:
    """Duration of a sweep in seconds: median, 10 % and 90 % quantile of simulations."""

    low_s: float
    median_s: float
    high_s: float
    n_trainings: int
    slots: int


@dataclass(frozen=True)
class Stretches:
    """Expected stretches of training of a sweep with rungs, if ranks at all rungs agree.

    Attributes:
        rungs: of the sweep.
        n_configs: number of configs that would start.
        n_full: number of configs that would be trained in full.
        steps: steps of each stretch of training, in the order of their starts.
    """

    rungs: Rungs
    n_configs: int
    n_full: int
    steps: tuple[int, ...]


def simulate_rungs(sweep: Sweep, space: Space) -> Stretches | None:
    """Simulate a sweep with rungs, with random values that are constant over
    steps; ``None`` without.
    """
    if not isinstance(sweep.rungs, list):
        return None
    rungs = Rungs(tuple(sweep.rungs), sweep.eta, load_trainer(sweep.trainer).resumes)
    schedule = Schedule(sweep.schedule, sweep.batch, budget=sweep.trials)
    rng, values, steps = np.random.default_rng(0), dict[int, float](), list[int]()
    with Search(space, "random", rungs=rungs) as search:
        driver = Driver(search, schedule)
        while isinstance(run := driver.next(expected_slots(sweep)), Run):
            goal = run.until or rungs.full
            steps.append(goal - run.resumed_from)
            value = values.setdefault(run.number, float(rng.random()))
            driver.on_end(run.number, value, step=goal)
        counts = search.history.state_counts()
    return Stretches(rungs, len(values), counts["finished"], tuple(steps))


def draw_forecast(
    space: Space, describe: Describe, limits: Limits | None, n: int, seed: int = 0
) -> Forecast:
    """Draw ``n`` configs and describe those inside the limits."""
    rng = np.random.default_rng(seed)
    found: list[dict[str, float]] = []
    for _ in range(n):
        config = space.sample(rng)
        if limits is None or limits(config):
            found.append(numbers_of(describe(config)))
    names = [name for name in (found[0] if found else {}) if all(name in one for one in found)]
    return Forecast(n, len(found), {name: [one[name] for one in found] for name in names})


def sweep_length(forecast: Forecast, sweep: Sweep, space: Space) -> Length | None:
    """Simulate the sweep's rounds with the predicted seconds; ``None`` without predictions."""
    seconds = forecast.numbers.get(SECONDS)
    if not seconds:
        return None
    slots = expected_slots(sweep)
    if (stretches := simulate_rungs(sweep, space)) is not None:
        return _stretched_length(stretches, seconds, slots)
    sizes = round_sizes(sweep, space, slots)
    rng = np.random.default_rng(0)
    is_sorted = sweep.schedule == "round"  # in a round the most expensive trials start first
    draws = ([rng.choice(np.asarray(seconds), n) for n in sizes] for _ in range(N_SIMULATED))
    lengths = [sum(_end(-np.sort(-one) if is_sorted else one, slots) for one in d) for d in draws]
    low, median, high = np.quantile(lengths, [0.1, 0.5, 0.9])
    return Length(float(low), float(median), float(high), sum(sizes), slots)


def _stretched_length(stretches: Stretches, seconds: list[float], slots: int) -> Length:
    """Duration of a sweep with rungs; waiting for the end of rounds is ignored."""
    rng, shares = np.random.default_rng(0), np.array(stretches.steps) / stretches.rungs.full
    draws = (rng.choice(np.asarray(seconds), len(shares)) * shares for _ in range(N_SIMULATED))
    low, median, high = np.quantile([_end(one, slots) for one in draws], [0.1, 0.5, 0.9])
    return Length(float(low), float(median), float(high), len(shares), slots)


def expected_slots(sweep: Sweep) -> int:
    """Trials that run at once: as set, else as many as this machine's cores and GPUs allow."""
    if isinstance(sweep.slots, int):
        return sweep.slots
    return max(min(room_here(sweep.needs), max(sweep.trials, _n_repeats(sweep))), 1)


def _n_repeats(sweep: Sweep) -> int:
    """Lower bound of the number of repeats."""
    return sweep.repeats * min(sweep.repeat_top, sweep.trials)


def round_sizes(sweep: Sweep, space: Space, slots: int) -> list[int]:
    """Number of trials of each round; repeats are the last one."""
    usual = sweep.batch or (slots if is_crowded(space) else max(space.n_subspaces, slots))
    left = sweep.trials
    sizes: list[int] = []
    while left > 0:
        size = first_size(sweep, space) if not sizes else usual
        sizes.append(min(size, left))
        left -= sizes[-1]
    if sweep.schedule == "async":
        sizes = [sweep.trials]
    n_repeats = _n_repeats(sweep)
    return [*sizes, n_repeats] if n_repeats else sizes


def first_size(sweep: Sweep, space: Space) -> int:
    """Configs that begin, and what they leave of the initial design."""
    begin = sweep.begin if isinstance(sweep.begin, list) else []
    return len(begin) + design_size(space, Counter(space.subspace_of(c).index for c in begin))


def _end(seconds: NDArray[np.float64], slots: int) -> float:
    """End time of the last trial of a round, if each takes the first free slot."""
    free = [0.0] * min(slots, len(seconds))
    for one in seconds:
        heapq.heappush(free, heapq.heappop(free) + float(one))
    return max(free)
