"""Optuna's TPE with its successive-halving pruner, through its ask-and-tell interface."""

from __future__ import annotations

import math
from typing import Any

from nasbo.bench.cell import design_of
from nasbo.bench.curves.clock import rungs_of
from nasbo.bench.curves.ledger import Ledger
from nasbo.bench.problem import Config, Problem
from nasbo.history import config_key
from nasbo.methods.tpe import Tpe
from nasbo.space.flat import to_flat


class OptunaSearch:
    """One Optuna study on one worker, with the sampler's defaults and the first of nasbo's rungs.

    A pruned trial is not continued. On a pool, a suggestion is replaced by the nearest unused
    config, whose values are reported.
    """

    def __init__(self, problem: Problem, budget: int, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.ledger = Ledger(problem, budget, seed)
        self._problem, self._tpe = problem, Tpe(problem.space)
        self._states = optuna.trial.TrialState
        rungs = rungs_of(problem)
        self._study = optuna.create_study(
            sampler=optuna.samplers.TPESampler(seed=seed),
            pruner=optuna.pruners.SuccessiveHalvingPruner(
                min_resource=rungs.first, reduction_factor=rungs.eta
            ),
        )
        self._used: set[str] = set()
        self._design = [one.config for one in design_of(problem, seed)]
        self._now = 0

    def run(self) -> dict[str, Any]:
        """Train until the budget is spent or the pool is used up; returns
        columns of a cell's record.
        """
        number = 0
        while not self.ledger.is_spent and (asked := self._ask(number)) is not None:
            self._train(number, *asked)
            number += 1
        return {"rounds": [], "sources": [], "fallbacks": {}}

    def _ask(self, number: int) -> tuple[Any, Config] | None:
        """A trial of the study and its config; ``None`` when the pool is used up."""
        if number < len(self._design):
            trial, config = self._begin(self._design[number])
        else:
            trial = self._study.ask()
            config = self._tpe._ask(trial)
            if self._problem.snap is not None:
                # The sampler ignores failed trials.
                self._study.tell(trial, state=self._states.FAIL)
                member = self._problem.snap(config, self._used)
                if member is None:
                    return None
                trial, config = self._begin(member)
        self._used.add(config_key(config))
        return trial, config

    def _begin(self, config: Config) -> tuple[Any, Config]:
        """A trial with a given config."""
        self._study.enqueue_trial(dict(to_flat(self._problem.space.subspace_of(config), config)))
        trial = self._study.ask()
        self._tpe._ask(trial)
        return trial, config

    def _train(self, number: int, trial: Any, config: Config) -> None:
        for step in range(1, self.ledger.n_steps + 1):
            if self.ledger.is_spent:
                return
            self._now += 1
            value = self.ledger.train(number, config, step, self._now)
            if not math.isfinite(value):
                self._study.tell(trial, state=self._states.FAIL)
                return
            trial.report(value, step)
            if step < self.ledger.n_steps and trial.should_prune():
                self._study.tell(trial, state=self._states.PRUNED)
                break
        else:
            self._study.tell(trial, value)
        self.ledger.end(number, step, value, self._now)
