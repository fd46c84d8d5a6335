"""A space and what its trainer says of configs come in; sizes, seconds and lengths go out.

Configs are drawn as the design draws them; the method's own choices may be dearer or cheaper.
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
    """What trials will be like.

    Attributes:
        n_drawn: how many configs were drawn.
        n_allowed: how many of them keep to the constraints.
        numbers: the allowed ones' numbers, by name, as far as all of them have one.
    """

    n_drawn: int
    n_allowed: int
    numbers: dict[str, list[float]]

    def shares(self, name: str) -> dict[str, float]:
        """The smallest, the median, the largest ... of a number."""
        values = np.quantile(self.numbers[name], list(SHARES.values()))
        return dict(zip(SHARES, map(float, values), strict=True))


@dataclass(frozen=True)
class Length:
    """How long a sweep takes, in seconds: one in ten simulated ones is shorter, or longer."""

    low_s: float
    median_s: float
    high_s: float
    n_trainings: int
    slots: int


@dataclass(frozen=True)
class Stretches:
    """How trials would be trained with rungs, if their ranks at all rungs agreed.

    Attributes:
        rungs: of the sweep.
        n_configs: how many would begin.
        n_full: how many would be trained in full.
        steps: of each stretch of a training, in the order in which they would begin.
    """

    rungs: Rungs
    n_configs: int
    n_full: int
    steps: tuple[int, ...]


def simulate_rungs(sweep: Sweep, space: Space) -> Stretches | None:
    """The stretches of a sweep with rungs whose method draws configs at random, else ``None``."""
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
    """Draw ``n`` configs and describe those that keep to the limits."""
    rng = np.random.default_rng(seed)
    found: list[dict[str, float]] = []
    for _ in range(n):
        config = space.sample(rng)
        if limits is None or limits(config):
            found.append(numbers_of(describe(config)))
    names = [name for name in (found[0] if found else {}) if all(name in one for one in found)]
    return Forecast(n, len(found), {name: [one[name] for one in found] for name in names})


def sweep_length(forecast: Forecast, sweep: Sweep, space: Space) -> Length | None:
    """Simulate the sweep's rounds with trials of the predicted seconds; ``None`` without these."""
    seconds = forecast.numbers.get(SECONDS)
    if not seconds:
        return None
    slots = expected_slots(sweep)
    if (stretches := simulate_rungs(sweep, space)) is not None:
        return _stretched_length(stretches, seconds, slots)
    sizes = round_sizes(sweep, space, slots)
    rng = np.random.default_rng(0)
    is_sorted = sweep.schedule == "round"  # in a round the dearest trials start first
    draws = ([rng.choice(np.asarray(seconds), n) for n in sizes] for _ in range(N_SIMULATED))
    lengths = [sum(_end(-np.sort(-one) if is_sorted else one, slots) for one in d) for d in draws]
    low, median, high = np.quantile(lengths, [0.1, 0.5, 0.9])
    return Length(float(low), float(median), float(high), sum(sizes), slots)


def _stretched_length(stretches: Stretches, seconds: list[float], slots: int) -> Length:
    """Of a sweep with rungs; waiting for the end of rounds is left out."""
    rng, shares = np.random.default_rng(0), np.array(stretches.steps) / stretches.rungs.full
    draws = (rng.choice(np.asarray(seconds), len(shares)) * shares for _ in range(N_SIMULATED))
    low, median, high = np.quantile([_end(one, slots) for one in draws], [0.1, 0.5, 0.9])
    return Length(float(low), float(median), float(high), len(shares), slots)


def expected_slots(sweep: Sweep) -> int:
    """Trials at once: as the sweep says, else what this machine's cores and GPUs hold of it."""
    if isinstance(sweep.slots, int):
        return sweep.slots
    return max(min(room_here(sweep.needs), max(sweep.trials, _n_repeats(sweep))), 1)


def _n_repeats(sweep: Sweep) -> int:
    """The fewest that there can be."""
    return sweep.repeats * min(sweep.repeat_top, sweep.trials)


def round_sizes(sweep: Sweep, space: Space, slots: int) -> list[int]:
    """Trials of each round; repeats are a last one."""
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
    """When the last of a round's trials ends, if each takes the first slot that is free."""
    free = [0.0] * min(slots, len(seconds))
    for one in seconds:
        heapq.heappush(free, heapq.heappop(free) + float(one))
    return max(free)
