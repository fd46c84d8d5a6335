"""Stopping rules of the benchmark: Ray's ASHA, and a screen by the first epoch."""

from __future__ import annotations

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


def screen(step: int, n_screening: float) -> StoppingRule:
    """Configs are trained to one early step; later the best of them in full, one after the other.

    Args:
        step: at which all pause.
        n_screening: steps in all after which no further config begins.
    """

    def due(history: View) -> list[tuple[int, int | None]]:
        runs = history.runs
        n_trained = sum(run.step for run in runs)
        is_screening = n_trained < n_screening and not history.is_exhausted
        if is_screening or any(run.state == "waiting" for run in runs):
            return []
        paused = [(-history.score(run.value or 0.0), run.number) for run in runs if run.is_paused]
        return [(min(paused)[1], None)] if paused else []

    return StoppingRule(until=lambda run: step, due=due)
