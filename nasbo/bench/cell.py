"""One search of a benchmark, given by plain values: problem, method, seed and protocol."""

from __future__ import annotations

import hashlib
import json
import math
import resource
import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nasbo.bench.lookup import find_entry, find_problem
from nasbo.bench.pool import decider_of, snapped
from nasbo.bench.problem import Problem
from nasbo.bench.returned import RULE, Returned
from nasbo.bench.spec import MethodSpec, parse_method
from nasbo.bench.version import method_version
from nasbo.errors import NasboError
from nasbo.features import Features
from nasbo.history import History, Run
from nasbo.methods.base import Suggestion, design_size, draw_anywhere
from nasbo.methods.exclusion import Excluded
from nasbo.methods.random import RandomSearch
from nasbo.search import Driver, Next, Schedule, Search
from nasbo.space import Space

Record = dict[str, Any]
PROTOCOL = 1
"""Version of the protocol, raised when the same cell would be run differently."""
TOLD = "features"
"""Rule of a method that is told what the problem knows of its configs."""
_NOISE = 7919


@dataclass(frozen=True)
class Protocol:
    """How a search is run.

    Attributes:
        trials: number of configs after the initial design.
        batch: number of configs per suggestion.
        design: size of the initial design, drawn over all subspaces; ``None`` means two configs per
            subspace, or 24 if there are more than 16 subspaces.
    """

    trials: int = 80
    batch: int = 1
    design: int | None = None

    def __post_init__(self) -> None:
        for name in ("trials", "batch"):
            if getattr(self, name) < 1:
                raise NasboError(f"{name} >= 1 must hold, but got {getattr(self, name)}")
        if self.design is not None and self.design < 2:
            raise NasboError(f"design >= 2 must hold, but got {self.design}")

    def __str__(self) -> str:
        return f"{self.trials} trials"


@dataclass(frozen=True)
class Cell:
    """One search of a benchmark, by plain values that can be sent to another process."""

    problem: str
    method: str
    seed: int
    protocol: Protocol

    @property
    def spec(self) -> MethodSpec:
        return parse_method(self.method)


def cell_key(cell: Cell, problem: Problem) -> Record:
    """Everything that determines a cell's result."""
    spec = cell.spec
    rule: Record = {"returned": RULE} if problem.is_returned else {}
    if problem.front is not None:
        rule["objectives"] = list(problem.front.objectives)
    if told := features_of(spec, problem):
        rule["features"] = list(told.names_in(problem.space))
    return {
        "problem": cell.problem,
        "problem_version": problem.version,
        "space": problem.space.fingerprint(),
        "method": spec.method,
        "options": spec.values,
        "version": method_version(spec),
        "seed": cell.seed,
        **asdict(cell.protocol),
        "batch": spec.batch_size(problem.space, cell.protocol.batch),
        "protocol": PROTOCOL,
        **rule,
    }


def features_of(spec: MethodSpec, problem: Problem) -> Features | None:
    """The features that a method receives: marked ``+features``, or for several objectives."""
    if problem.front is not None:
        return problem.features
    if TOLD not in spec.rules:
        return None
    if problem.features is None:
        raise NasboError(f"{problem.name}: nothing is known of its configs, got {spec.label!r}")
    return problem.features


def key_hash(key: Record) -> str:
    """A short hash of a key."""
    text = json.dumps(key, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def initial_design(space: Space, seed: int, size: int | None = None) -> list[Suggestion]:
    """The configs that every method starts from, determined by the space and the seed."""
    if size is None:
        return RandomSearch(space, seed).suggest(History(space), design_size(space))
    rng, taken = np.random.default_rng([seed, 0]), Excluded()
    chosen: list[Suggestion] = []
    while len(chosen) < size and (config := draw_anywhere(space, taken, rng)) is not None:
        taken.add(config)
        chosen.append(Suggestion(config, "design"))
    return chosen


def design_of(problem: Problem, seed: int, size: int | None = None) -> list[Suggestion]:
    """The initial design of a problem, with configs of its pool if it has one."""
    return snapped(problem, initial_design(problem.space, seed, size), ())


def run_cell(cell: Cell) -> Record:
    """Run one search. Exceptions are not caught."""
    begin = time.perf_counter()
    entry, spec = find_entry(cell.problem), cell.spec
    problem = find_problem(cell.problem)
    space, protocol = problem.space, cell.protocol
    told = features_of(spec, problem)
    goal = None if problem.front is None else problem.front.objectives
    search = Search(
        space, spec.method, "min", cell.seed, features=told, objectives=goal, **spec.values
    )
    size = protocol.design
    if size is None and problem.front is not None:
        size = design_size(space, None, len(problem.front.objectives))
    n_design = len(search.add_round(design_of(problem, cell.seed, size), 0.0))
    schedule = Schedule("async", budget=n_design + protocol.trials)
    driver = Driver(search, schedule, decider_of(problem))
    scores: list[float | None] = []
    rounds: list[list[float]] = []
    returned = Returned(problem) if problem.is_returned else None
    batch = spec.batch_size(space, protocol.batch)
    while isinstance(run := _next_run(driver, batch, rounds), Run):
        scores.append(_evaluate(driver, problem, run, cell.seed))
        if len(scores) == n_design:
            _warm_up(spec, search.history, told)
        if returned is not None and len(scores) >= n_design:
            returned.ask(search)
    return {
        "key": cell_key(cell, problem),
        "label": spec.label,
        "group": entry.group,
        "half": entry.half,
        "optimum": problem.optimum,
        "is_noisy": problem.truth is not None,
        "n_subspaces": space.n_subspaces,
        "n_design": n_design,
        "scores": scores,
        "returned": None if returned is None else returned.columns(scores, n_design),
        "rounds": rounds,
        **_columns(search.history),
        "seconds": round(time.perf_counter() - begin, 3),
        "made": round(time.time(), 3),
    }


def _next_run(driver: Driver, batch: int, rounds: list[list[float]]) -> Run | Next:
    """The run to evaluate next; records the CPU time if the method decided on a round.

    One run is evaluated at a time, so all ``batch`` slots are free when the method is asked. An
    empty round means that every config of the space has been tried.
    """
    history, started = driver.search.history, cpu_seconds()
    first = history.n_suggested
    run = driver.next(batch)
    size = history.n_suggested - first
    if size or history.is_exhausted:
        rounds.append([first, size, round(cpu_seconds() - started, 5)])
    return run


_WARM: set[str] = set()


def _warm_up(spec: MethodSpec, history: History, told: Features | None) -> None:
    """Let a method import and compile once per process, untimed; its suggestions are discarded."""
    if spec.label not in _WARM:
        _WARM.add(spec.label)
        method = spec.make(history.space)
        method.features = told
        method.suggest(history, 1)


def cpu_seconds() -> float:
    """CPU time of this process and of the children that it has waited for."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def _columns(history: History) -> Record:
    trials = history.trials
    return {
        "values": [trial.value for trial in trials],
        "sources": [trial.source for trial in trials],
        "subspaces": [trial.subspace for trial in trials],
        "configs": [trial.config for trial in trials],
        "fallbacks": fallback_reasons(history),
    }


def fallback_reasons(history: History) -> dict[str, int]:
    """Number of fallback configs, by reason."""
    fallbacks = (trial for trial in history.trials if trial.source == "fallback")
    return dict(Counter(trial.info.get("reason", "unknown") for trial in fallbacks))


def _evaluate(driver: Driver, problem: Problem, run: Run, seed: int) -> float | None:
    """Evaluate a run and tell its value; the noise depends on the seed
    and the run's number only.

    Returns:
        Its score; ``None`` if the run failed, or if the truth is too costly for all configs.
    """
    config = driver.search.history.trial(run.number).copy().config
    value = float(problem.evaluate(config, np.random.default_rng([_NOISE, seed, run.number])))
    driver.on_end(run.number, value)
    if problem.front is not None:
        configs = [t.config for t in driver.search.history.trials if t.value is not None]
        return 1.0 - problem.front.share(configs)
    if not math.isfinite(value) or problem.is_truth_costly:
        return None
    score = float(problem.score(config, value))
    return score if math.isfinite(score) else None
