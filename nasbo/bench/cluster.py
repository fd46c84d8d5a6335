"""A method, a problem and a number of workers come in; how a cluster would have fared goes out.

The cluster is simulated with a clock of its own; the deciding is the sweep's: the same ``Search``
and ``Rounds`` that the Ray Tune searcher drives, asked in the same order. A decision takes the
processor time that it really took; meanwhile trials end, and their results are seen by the next.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr

from nasbo.bench.cell import cpu_seconds
from nasbo.bench.problem import Problem
from nasbo.bench.spec import MethodSpec
from nasbo.errors import NasboError
from nasbo.history import Trial
from nasbo.methods import Suggestion
from nasbo.rounds import Rounds, Schedule
from nasbo.search import Search
from nasbo.space import Space

TAILS = ("lognormal", "pareto")
SCHEDULES = ("round", "async")
_DURATIONS, _NOISE = 104729, 7919


@dataclass(frozen=True)
class Durations:
    """How long trials run.

    Attributes:
        mean_s: seconds in the mean.
        tail: ``lognormal`` or ``pareto``.
        shape: sd of the logarithm (1: the longest of 64 takes about 8 times the mean), or the
            exponent of the Pareto tail, above 1.
        correlation: of the duration's normal score with the mean of a config's numbers: large
            networks take longer; 0 where the config says nothing.
        seed: trial k of a seed draws the same number in every schedule and method.
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
        """Seconds that a trial runs."""
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
    """What is simulated.

    Attributes:
        workers: trials at a time.
        trials: configs in all, the design included.
        schedule: ``round`` or ``async``, as in a sweep.
        durations: of the trials.
        seed: of the search.
        suggestion_s: charged for every decision instead of what it took; ``None`` for that.
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
    """What happened; times in simulated seconds.

    Attributes:
        improvements: (time, least true value so far) whenever it fell.
        decisions: (time, configs, seconds) of each decision.
        end_s: when the last trial ended.
        handed_out_s: when the last trial began: until then there was work for every worker.
        busy_s: worker-seconds of running trials until ``handed_out_s``.
        thinking_s: worker-seconds in which free workers waited for a decision, until then.
        waiting_s: worker-seconds in which they waited for the other trials of a round, until then.
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
        """Part of the workers' time that was spent on trials, until the last one began."""
        return self.busy_s / max(self.busy_s + self.thinking_s + self.waiting_s, 1e-12)

    @property
    def all_busy_share(self) -> float:
        """The same to the end of the last trial: with few trials per worker, the tail decides."""
        return self.all_busy_s / max(self.cluster.workers * self.end_s, 1e-12)

    def best_at(self, time_s: float) -> float:
        """The least true value at a time; infinity before the first result."""
        return min((best for at, best in self.improvements if at <= time_s), default=math.inf)


@dataclass(frozen=True)
class _Decision:
    ready_s: float
    suggestions: list[Suggestion]
    seconds: float
    unseen: list[int]


class Simulation:
    """One search on one simulated cluster."""

    def __init__(self, problem: Problem, spec: MethodSpec, cluster: Cluster) -> None:
        self._problem, self._cluster = problem, cluster
        space = problem.space
        self._search = Search(space, spec.method, "min", cluster.seed, **spec.values)
        self._method = spec.make(space, cluster.seed)
        self._rounds = Rounds(self._search, Schedule(cluster.schedule, budget=cluster.trials))
        self._running: list[tuple[float, int]] = []
        self._decision: _Decision | None = None
        self._now = 0.0
        self._best = math.inf
        self.course = Course(cluster)
        self._idle: list[tuple[float, float, float, float]] = []

    def run(self, on_end: Callable[[], object] = lambda: None) -> Course:
        """Run until every trial has ended; ``on_end`` is called after each."""
        while self._step():
            next_s = min(self._next_times())
            self._count(next_s - self._now)
            self._now = next_s
            while self._running and self._running[0][0] <= self._now:
                self._end(self._search.history.trial(heapq.heappop(self._running)[1]))
                on_end()
        return self._close()

    def _step(self) -> bool:
        """What the searcher does when Tune asks: fetch, think, start; whether anything goes on."""
        if self._decision is not None and self._decision.ready_s <= self._now:
            ready, self._decision = self._decision, None
            self._rounds.add(ready.suggestions, ready.seconds, ready.unseen)
        self._start_trials()
        if self._decision is None and (n := self._rounds.wanted(self._cluster.workers)):
            self._decide(n)
        return bool(self._next_times())

    def _next_times(self) -> list[float]:
        ready = [self._decision.ready_s] if self._decision is not None else []
        return ready + [end for end, _ in self._running[:1]]

    def _decide(self, n: int) -> None:
        history = self._search.history
        unseen = history.open_numbers
        began = cpu_seconds()
        suggestions = self._method.suggest(history, n)
        charged = self._cluster.suggestion_s
        seconds = cpu_seconds() - began if charged is None else charged
        self._decision = _Decision(self._now + seconds, suggestions, seconds, unseen)
        self.course.decisions.append((self._now, len(suggestions), seconds))

    def _start_trials(self) -> None:
        while len(self._running) < self._cluster.workers:
            run = self._rounds.next_run()
            if run is None:
                return
            self._search.start(run)
            trial = self._search.history.trial(run.number)
            lasts = self._cluster.durations.of(trial, self._search.space)
            heapq.heappush(self._running, (self._now + lasts, trial.id))
            self.course.handed_out_s = self._now

    def _end(self, trial: Trial) -> None:
        rng = np.random.default_rng([_NOISE, self._cluster.seed, trial.id])
        config = trial.copy().config
        value = float(self._problem.evaluate(config, rng))
        self._search.tell(trial, value)
        score = self._problem.score(config, value)
        if score < self._best:
            self._best = score
            self.course.improvements.append((self._now, score))
        self.course.end_s = self._now

    def _count(self, seconds: float) -> None:
        """Note what the workers do until the next event."""
        idle = self._cluster.workers - len(self._running)
        is_thinking = self._decision is not None
        busy, lost = seconds * len(self._running), seconds * idle
        self._idle.append((self._now, busy, lost * is_thinking, lost * (not is_thinking)))

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
