"""Use of a sweep's budget: steps of training, over time and in units of full trainings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import accumulate

from nasbo.history import Run, Trial, View


def budget_text(history: View, budget: int) -> str:
    """Used budget as text: trials, or with rungs full trainings' worth."""
    if history.rungs is None:
        return f"{history.n_ended} of {budget} trials"
    return (
        f"{history.spent:.1f} of {budget} trainings' worth; {history.n_suggested} configs, "
        f"{n_full(history)} in full"
    )


def least_budget(history: View) -> int:
    """The smallest budget that covers the decisions so far."""
    if history.rungs is None:
        return history.n_suggested
    return math.ceil(history.spent - 1e-6)


def n_full(history: View) -> int:
    """Number of configs of the search that were trained in full."""
    return sum(trial.state == "finished" for trial in history.suggested)


def reported_steps(run: Run) -> Iterator[tuple[float, int]]:
    """Time of each report, and number of steps since the previous one."""
    before = 0
    for one in run.measurements:
        if one.step <= before:  # restarted, from its checkpoint or from the start
            before = 0 if run.n_repeated_steps else one.step - 1
        yield one.time, one.step - before
        before = one.step


def n_trained(runs: Iterable[Run]) -> int:
    """Number of trained steps, including repeated ones."""
    return sum(n for run in runs for _, n in reported_steps(run))


def spent_until(history: View, time: float) -> float:
    """Budget that was used until a time, in full trainings; requires rungs.

    Trials count with the steps that they had trained by then, those that needed no training with
    the first rung, as in ``View.cost``.
    """
    assert history.rungs is not None
    total = 0
    for trial in history.suggested:
        n = sum(n for at, n in reported_steps(trial.first) if at <= time)
        has_ended = (trial.ended_at or math.inf) <= time
        total += max(min(n, history.cost(trial)), history.rungs.lower[0] if has_ended else 0)
    return total / history.rungs.full


def n_whole(history: View) -> int:
    """Steps that full trainings of all started configs would take; failed runs count with the
    steps that they trained.

    Requires rungs.
    """
    assert history.rungs is not None
    begun = [trial.first for trial in history.suggested if trial.attempts]
    return sum(n_trained([r]) if r.state == "failed" else history.rungs.full for r in begun)


def course(history: View) -> list[tuple[int, Trial]]:
    """Trials with a value in the order of their ends, each with the number of
    steps trained until then.

    Results from elsewhere have no steps.
    """
    reports = sorted(
        one for run in history.runs if not run.is_repeat for one in reported_steps(run)
    )
    totals = [0, *accumulate(n for _, n in reports)]
    valued = (trial for trial in history.trials if trial.value is not None and not trial.is_open)
    found, at = [], 0
    for trial in sorted(valued, key=lambda trial: (trial.ended_at or 0.0, trial.id)):
        while at < len(reports) and reports[at][0] <= (trial.ended_at or 0.0):
            at += 1
        found.append((0 if trial.source == "observed" else totals[at], trial))
    return found


def best_course(history: View, is_open: bool = False) -> list[tuple[float, float]]:
    """Best value so far over the used budget: trials, or with rungs trainings' worth.

    One point per ended trial, or with rungs per trial trained in full; NaN before the first value.

    Args:
        history: of the sweep.
        is_open: True: without the last point, at the present budget (with rungs only).
    """
    rungs = history.rungs
    if rungs is None:
        return [*enumerate(history.best_so_far(), start=1)]
    points: list[tuple[float, float]] = []
    best: float | None = None
    for n_steps, trial in course(history):
        if trial.is_comparable and trial.value is not None:
            best = trial.value if history.objectives.is_better(trial.value, best) else best
        if best is not None:
            points.append((n_steps / rungs.full, best))
    if is_open or not points:
        return points
    used = n_trained(run for run in history.runs if not run.is_repeat) / rungs.full
    return [*points, (max(used, points[-1][0]), points[-1][1])]


def whole_course(history: View) -> list[float]:
    """Best value so far after each trial or, with rungs, after each full training's worth."""
    if history.rungs is None:
        return history.best_so_far()
    points = best_course(history)
    n_worths = math.ceil(points[-1][0]) if points else 0
    known = [[best for at, best in points if at <= n] for n in range(1, n_worths + 1)]
    return [one[-1] if one else math.nan for one in known]
