"""Stopping rules of the benchmark: Ray's ASHA, and a screen by the first epoch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nasbo.history import Measurement, Run, Rungs, View
from nasbo.search import StoppingRule, Verdict


def asha(history: View, rungs: Rungs) -> StoppingRule:
    """Asynchronous successive halving as Ray has it: trials are stopped, none is paused.

    At each rung below the full training a trial is stopped whose score is below the quantile
    1 - 1 / eta of those that came there before it; the first one goes on. As in
    ``ray.tune.schedulers.async_hyperband._Bracket``, with rungs that need not be powers of eta.
    """

    def verdict(run: Run, measured: Measurement) -> Verdict:
        if measured.step not in rungs.lower or measured.value is None:
            return Verdict.GO_ON
        before = [
            history.score(value)
            for trial in history.suggested
            if trial.id != run.trial and (value := trial.value_at(measured.step)) is not None
        ]
        if not before:
            return Verdict.GO_ON
        cutoff = float(np.percentile(before, (1 - 1 / rungs.eta) * 100))
        return Verdict.STOP if history.score(measured.value) < cutoff else Verdict.GO_ON

    return StoppingRule(verdict=verdict)


@dataclass(frozen=True)
class Screen:
    """Configs are trained to one early step; the best of them in full, the best first.

    Attributes:
        step: at which all pause.
        n_configs: how many there are.
        n_finalists: how many are trained in full.
    """

    step: int
    n_configs: int
    n_finalists: int

    @staticmethod
    def of_budget(step: int, full: int, n_steps: int) -> Screen:
        """The screen that spends half of a budget on the early step.

        Args:
            step: at which all pause.
            full: steps of a full training.
            n_steps: of the whole budget.
        """
        n_configs = max(n_steps // 2 // step, 1)
        return Screen(step, n_configs, (n_steps - n_configs * step) // (full - step))

    @property
    def rule(self) -> StoppingRule:
        """The screen as drivers ask it."""
        return StoppingRule(until=lambda run: self.step, due=self.due)

    def due(self, history: View) -> list[tuple[int, int | None]]:
        """The best that paused, once all have; those before it have begun."""
        is_whole = history.n_suggested >= self.n_configs or history.is_exhausted
        runs = history.runs
        is_busy = any(run.until == self.step or run.state == "waiting" for run in history.open_runs)
        paused = [(-history.score(run.value or 0.0), run.number) for run in runs if run.is_paused]
        n_finalists = sum(run.until is None for run in runs)
        if not is_whole or is_busy or not paused or n_finalists >= self.n_finalists:
            return []
        return [(min(paused)[1], None)]
