"""Search with a method of nasbo on workers that train step by step, under a simulated clock."""

from __future__ import annotations

import heapq
import math
from itertools import count
from typing import Any

from nasbo.bench.cell import cpu_seconds, design_of, fallback_reasons
from nasbo.bench.curves.ledger import Ledger, curve_of
from nasbo.bench.curves.stopping import Screen, asha
from nasbo.bench.pool import decider_of
from nasbo.bench.problem import Problem
from nasbo.bench.spec import MethodSpec
from nasbo.errors import NasboError
from nasbo.history import Run, Rungs
from nasbo.search import Driver, Next, Policies, Schedule, Search, StoppingRule, Verdict
from nasbo.search.stopping import TO_THE_END

RULES = ("rungs", "asha", "screen")
ROUNDS = "rounds"
"""Rule that can be added to the others: decide whole rounds instead of
one config per free worker."""


def rungs_of(problem: Problem) -> Rungs:
    """The rungs of a problem, the same for all methods that have rungs."""
    n_steps = curve_of(problem).n_steps
    rungs = Rungs.auto(n_steps)
    if rungs is None:
        raise NasboError(f"{problem.name}: a training of {n_steps} steps is too short for rungs")
    return rungs


class ClockedSearch:
    """One search on a simulated clock: a step takes one unit of time, a decision none.

    Args:
        problem: with learning curves.
        spec: a method of nasbo with at most one of ``RULES``.
        workers: trials at a time.
        budget: in full trainings, including the design.
        seed: of the search and of the noise.
    """

    def __init__(
        self, problem: Problem, spec: MethodSpec, workers: int, budget: int, seed: int
    ) -> None:
        self.ledger = Ledger(problem, budget, seed)
        self._workers = workers
        rungs = rungs_of(problem)
        notes = {"rungs": rungs.to_json()} if "rungs" in spec.rules else {}
        self._search = Search(problem.space, spec.method, "min", seed, notes=notes, **spec.values)
        self._search.add_round(design_of(problem, seed), 0.0)
        limit, rule = self._limit_and_rule(spec, problem, rungs, budget)
        schedule = Schedule("round" if ROUNDS in spec.rules else "async", budget=limit)
        policies = Policies(stopping=rule)
        self.driver = Driver(self._search, schedule, decider_of(problem), policies)
        self._running: list[tuple[int, int, int, int]] = []
        self._serial, self._now = count(), 0
        self._rounds: list[list[float]] = []

    def _limit_and_rule(
        self, spec: MethodSpec, problem: Problem, rungs: Rungs, budget: int
    ) -> tuple[int | None, StoppingRule]:
        """Maximum number of configs for the schedule, and the rule that decides
        how far runs are trained.

        ASHA has no maximum: it starts configs until the budget is spent.
        """
        if "asha" in spec.rules:
            return None, asha(self._search.history, rungs)
        if "screen" in spec.rules:
            first = curve_of(problem).n_untrained + 1
            one = Screen.of_budget(first, rungs.full, budget * rungs.full)
            return one.n_configs, one.rule
        return budget, TO_THE_END

    def run(self) -> dict[str, Any]:
        """Train until the budget is spent or no run is left; returns columns of a cell's record."""
        self._hand_out()
        while self._running and not self.ledger.is_spent:
            self._now = self._running[0][0]
            while self._running and self._running[0][0] == self._now and not self.ledger.is_spent:
                _, _, number, step = heapq.heappop(self._running)
                self._train(number, step)
            if not self.ledger.is_spent:
                self._hand_out()
        history = self._search.history
        return {
            "rounds": self._rounds,
            "sources": [trial.source for trial in history.trials],
            "states": [trial.state for trial in history.trials],
            "fallbacks": fallback_reasons(history),
            "dropped": sorted(history.rungs.dropped) if history.rungs else [],
        }

    def _hand_out(self) -> None:
        """Start a run on each free worker, as long as there are any."""
        while isinstance(run := self._next(), Run):
            self._push(run.number, run.resumed_from + 1)

    def _next(self) -> Run | Next:
        history, started = self._search.history, cpu_seconds()
        first, was_exhausted = history.n_suggested, history.is_exhausted
        answer = self.driver.next(self._workers)
        if history.is_exhausted and not was_exhausted:
            answer = self.driver.next(self._workers)  # a rule may wait for the exhausted space
        if size := history.n_suggested - first:
            self._rounds.append([first, size, round(cpu_seconds() - started, 5)])
        return answer

    def _push(self, number: int, step: int) -> None:
        heapq.heappush(self._running, (self._now + 1, next(self._serial), number, step))

    def _train(self, number: int, step: int) -> None:
        """Handle the end of one training step of a run."""
        trial = self._search.history.trial(number)
        value = self.ledger.train(number, trial.config, step, self._now)
        is_known = math.isfinite(value)
        verdict = self.driver.on_report(number, step, value if is_known else None, {})
        is_over = step == self.ledger.n_steps or not is_known
        if verdict is Verdict.GO_ON and not is_over:
            self._push(number, step + 1)
            return
        error = None if is_over else "paused" if verdict is Verdict.PAUSE else "stopped"
        self.driver.on_end(number, value, error=error, step=step)
        best = self._search.history.best
        self.ledger.take(None if best is None else best.id, self._now)
