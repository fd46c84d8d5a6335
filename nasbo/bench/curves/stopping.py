"""Stopping rules of the benchmark: ASHA as in Ray, and screening at one early step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nasbo.history import Measurement, Run, Rungs, View
from nasbo.search import StoppingRule, Verdict


def asha(history: View, rungs: Rungs) -> StoppingRule:
    """Asynchronous successive halving as in Ray: trials are stopped, never paused.

    At each rung below the full training, a trial is stopped if its score is below the quantile 1 -
    1 / eta of the earlier trials there; the first trial continues. Follows
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
    """Screening: all configs are trained to one early step, then the best
    ones in full, best first.

    Attributes:
        step: step at which all pause.
        n_configs: number of configs.
        n_finalists: number of configs that are trained in full.
    """

    step: int
    n_configs: int
    n_finalists: int

    @staticmethod
    def of_budget(step: int, full: int, n_steps: int) -> Screen:
        """Screening that spends half of a budget on the early step.

        Args:
            step: step at which all pause.
            full: number of steps of a full training.
            n_steps: number of steps of the whole budget.
        """
        n_configs = max(n_steps // 2 // step, 1)
        return Screen(step, n_configs, (n_steps - n_configs * step) // (full - step))

    @property
    def rule(self) -> StoppingRule:
        """The screening as a rule for drivers."""
        return StoppingRule(until=lambda run: self.step, due=self.due)

    def due(self, history: View) -> list[tuple[int, int | None]]:
        """The best paused run that has not been continued, once all have paused."""
        is_whole = history.n_suggested >= self.n_configs or history.is_exhausted
        runs = history.runs
        is_busy = any(run.until == self.step or run.state == "waiting" for run in history.open_runs)
        paused = [(-history.score(run.value or 0.0), run.number) for run in runs if run.is_paused]
        n_finalists = sum(run.until is None for run in runs)
        if not is_whole or is_busy or not paused or n_finalists >= self.n_finalists:
            return []
        return [(min(paused)[1], None)]
