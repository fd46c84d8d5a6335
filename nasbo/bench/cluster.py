"""Discrete-event simulation of a search on a cluster.

Only the cluster and its clock are simulated. Decisions are made as in a sweep: the same ``Driver``
and ``Schedule`` that the Ray Tune searcher uses are asked in the same order. A decision takes the
CPU time that it really took. Trials that end in the meantime are known to the next decision.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr

from nasbo.bench.cell import cpu_seconds
from nasbo.bench.pool import snapped
from nasbo.bench.problem import Problem
from nasbo.bench.spec import MethodSpec
from nasbo.errors import NasboError
from nasbo.history import Run, Trial
from nasbo.methods import Method, Suggestion
from nasbo.search import Decided, Driver, Schedule, Search
from nasbo.space import Space

TAILS = ("lognormal", "pareto")
SCHEDULES = ("round", "async")
_DURATIONS, _NOISE = 104729, 7919


@dataclass(frozen=True)
class Durations:
    """Random durations of trials.

    Attributes:
        mean_s: mean in seconds.
        tail: ``lognormal`` or ``pareto``.
        shape: standard deviation of the logarithm (1: the longest of 64 takes about 8 times the
            mean), or the exponent of the Pareto tail, above 1.
        correlation: between the normal score of the duration and the mean of a config's numbers, as
            large networks take longer; 0 if durations do not depend on configs.
        seed: trial k draws the same random number in every schedule and method.
    """

    mean_s: float = 600.0
    tail: str = "lognormal"
    shape: float = 1.0
    correlation: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.tail not in TAILS:
            raise NasboError(f"tail must be one of {', '.join(TAILS)}, got {self.tail!r}")
        if self.mean_s <= 0 or self.shape <= (1 if self.tail == "pareto" else 0):
            raise NasboError(f"mean_s > 0 and a shape above its least must hold, got {self!r}")
        if not -1 <= self.correlation <= 1:
            raise NasboError(f"-1 <= correlation <= 1 must hold, but got {self.correlation}")

    def of(self, trial: Trial, space: Space) -> float:
        """Duration of a trial in seconds."""
        z = float(np.random.default_rng([_DURATIONS, self.seed, trial.id]).standard_normal())
        if self.correlation:
            x = space.subspace(trial.subspace).encode(trial.config)
            own = math.sqrt(12.0 * len(x)) * (float(x.mean()) - 0.5) if len(x) else 0.0
            z = self.correlation * own + math.sqrt(1.0 - self.correlation**2) * z
        if self.tail == "lognormal":
            return self.mean_s * math.exp(self.shape * z - self.shape**2 / 2.0)
        survival = max(float(ndtr(-z)), 1e-12)
        return self.mean_s * (1.0 - 1.0 / self.shape) * math.pow(survival, -1.0 / self.shape)


@dataclass(frozen=True)
class Cluster:
    """Settings of a simulated cluster.

    Attributes:
        workers: number of trials at a time.
        trials: number of configs, including the design.
        schedule: ``round`` or ``async``, as in a sweep.
        durations: of the trials.
        seed: of the search.
        suggestion_s: fixed duration of each decision; ``None`` means the time that it really took.
    """

    workers: int = 64
    trials: int = 640
    schedule: str = "async"
    durations: Durations = field(default_factory=Durations)
    seed: int = 0
    suggestion_s: float | None = None

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            listed = ", ".join(SCHEDULES)
            raise NasboError(f"schedule must be one of {listed}, got {self.schedule!r}")
        if self.workers < 1 or self.trials < 1:
            raise NasboError(
                f"workers >= 1 and trials >= 1 must hold, got {self.workers}, {self.trials}"
            )


@dataclass
class Course:
    """Record of a simulation; times in simulated seconds.

    Attributes:
        improvements: (time, least true value so far) at each improvement.
        decisions: (time, configs, seconds) of each decision.
        end_s: when the last trial ended.
        handed_out_s: when the last trial began; until then there was work for every worker.
        busy_s: worker-seconds of running trials until ``handed_out_s``.
        thinking_s: worker-seconds until then in which free workers waited for a decision.
        waiting_s: worker-seconds until then in which they waited for the other trials of a round.
        all_busy_s: worker-seconds of running trials to the end.
    """

    cluster: Cluster
    improvements: list[tuple[float, float]] = field(default_factory=list)
    decisions: list[tuple[float, int, float]] = field(default_factory=list)
    end_s: float = 0.0
    handed_out_s: float = 0.0
    busy_s: float = 0.0
    thinking_s: float = 0.0
    waiting_s: float = 0.0
    all_busy_s: float = 0.0
    n_trials: int = 0
    n_fallbacks: int = 0

    @property
    def busy_share(self) -> float:
        """Share of the workers' time spent on trials, until the last one began."""
        return self.busy_s / max(self.busy_s + self.thinking_s + self.waiting_s, 1e-12)

    @property
    def all_busy_share(self) -> float:
        """Share of the workers' time spent on trials until the end of the last one.

        With few trials per worker it depends mostly on the slowest trials.
        """
        return self.all_busy_s / max(self.cluster.workers * self.end_s, 1e-12)

    def best_at(self, time_s: float) -> float:
        """Least true value at a time; infinity before the first result."""
        return min((best for at, best in self.improvements if at <= time_s), default=math.inf)


class _SimulatedDecider:
    """Decider that calls the method at once and returns the decision
    after its simulated duration.
    """

    def __init__(self, simulation: Simulation, method: Method) -> None:
        self._simulation, self._method = simulation, method
        self._ready: tuple[float, list[Suggestion], float] | None = None

    @property
    def is_busy(self) -> bool:
        return self._ready is not None

    @property
    def ready_s(self) -> list[float]:
        """Time at which the decision is ready; empty without one."""
        return [] if self._ready is None else [self._ready[0]]

    def begin(self, search: Search, n: int) -> None:
        began = cpu_seconds()
        chosen = self._method.suggest(search.history, n)
        suggestions = snapped(self._simulation.problem, chosen, search.history.keys)
        charged = self._simulation.course.cluster.suggestion_s
        seconds = cpu_seconds() - began if charged is None else charged
        now = self._simulation.now
        self._ready = (now + seconds, suggestions, seconds)
        self._simulation.course.decisions.append((now, len(suggestions), seconds))

    def fetch(self, is_idle: bool) -> Decided | None:
        if self._ready is None or self._ready[0] > self._simulation.now:
            return None
        (_, suggestions, seconds), self._ready = self._ready, None
        return suggestions, seconds


class Simulation:
    """One search on one simulated cluster."""

    def __init__(self, problem: Problem, spec: MethodSpec, cluster: Cluster) -> None:
        self.problem, self._cluster = problem, cluster
        space = problem.space
        self._search = Search(space, spec.method, "min", cluster.seed, **spec.values)
        self._decider = _SimulatedDecider(self, spec.make(space, cluster.seed))
        schedule = Schedule(cluster.schedule, budget=cluster.trials)
        self._driver = Driver(self._search, schedule, self._decider)
        self._running: list[tuple[float, int]] = []
        self.now = 0.0
        self._best = math.inf
        self.course = Course(cluster)
        self._idle: list[tuple[float, float, float, float]] = []

    def run(self, on_end: Callable[[], object] = lambda: None) -> Course:
        """Run until every trial has ended; ``on_end`` is called after each simulated event."""
        while self._step():
            next_s = min(self._next_times())
            self._count(next_s - self.now)
            self.now = next_s
            while self._running and self._running[0][0] <= self.now:
                self._end(self._search.history.trial(heapq.heappop(self._running)[1]))
                on_end()
        return self._close()

    def _step(self) -> bool:
        """Start what the driver has to start; false if nothing is running or being decided."""
        while isinstance(run := self._driver.next(self._cluster.workers), Run):
            trial = self._search.history.trial(run.number)
            lasts = self._cluster.durations.of(trial, self._search.space)
            heapq.heappush(self._running, (self.now + lasts, trial.id))
            self.course.handed_out_s = self.now
        return bool(self._next_times())

    def _next_times(self) -> list[float]:
        return self._decider.ready_s + [end for end, _ in self._running[:1]]

    def _end(self, trial: Trial) -> None:
        rng = np.random.default_rng([_NOISE, self._cluster.seed, trial.id])
        config = trial.copy().config
        value = float(self.problem.evaluate(config, rng))
        self._driver.on_end(trial.id, value)
        score = self.problem.score(config, value)
        if score < self._best:
            self._best = score
            self.course.improvements.append((self.now, score))
        self.course.end_s = self.now

    def _count(self, seconds: float) -> None:
        """Add the time until the next event to busy or idle time."""
        idle = self._cluster.workers - len(self._running)
        is_thinking = self._decider.is_busy
        busy, lost = seconds * len(self._running), seconds * idle
        self._idle.append((self.now, busy, lost * is_thinking, lost * (not is_thinking)))

    def _close(self) -> Course:
        course, history = self.course, self._search.history
        for at, busy, thinking, waiting in self._idle:
            course.all_busy_s += busy
            if at < course.handed_out_s:
                course.busy_s += busy
                course.thinking_s += thinking
                course.waiting_s += waiting
        course.n_trials = len(history.trials)
        course.n_fallbacks = sum(trial.source == "fallback" for trial in history.trials)
        return course


def simulate(problem: Problem, spec: MethodSpec, cluster: Cluster) -> Course:
    """Run one search on a simulated cluster."""
    return Simulation(problem, spec, cluster).run()
