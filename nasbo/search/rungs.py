"""Promotion between rungs by successive halving.

A trial runs to its rung, pauses, and continues if it is among the best of all trials seen there,
over all subspaces together. Everything follows from the history, so an interrupted search promotes
the same trials.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from nasbo.history import Run, Rungs, Trial, View
from nasbo.history.events import Targeted
from nasbo.methods.base import MAX_DESIGN_SUBSPACES
from nasbo.search.schedule import design_left

FINISH = 0.15
"""Last fraction of the budget, in which no new config starts, so that promising ones can finish."""
N_FINISHING = 3
"""Minimum number of runs (or slots, if more) that then continue although they are not
in the top of their rung."""
DESIGN_SHARE = 1 / 3
"""Fraction of the initial design that continues to the second rung."""
MIN_COMMON, MIN_AGREEMENT, SURE = 8, 0.3, 1.64
"""A rung is dropped if its rank correlation with the next one, over at least ``MIN_COMMON`` trials,
is below ``MIN_AGREEMENT`` with 95 % probability. The margin is needed because promoted trials are
the best of the lower rung, whose ranks correlate less than those of all trials: without it, good
rungs would be dropped by chance."""


@dataclass(frozen=True)
class Promotion:
    """A paused run that is to continue.

    Attributes:
        run: its number.
        until: its next rung; ``None`` for a full training.
        reason: explanation for users.
        n_steps: cost in steps of the budget.
        is_from_start: whether it trains from the start, as there is no checkpoint.
    """

    run: int
    until: int | None
    reason: str
    n_steps: int
    is_from_start: bool

    @property
    def event(self) -> Targeted:
        """The event for the journal."""
        return Targeted(
            run=self.run,
            until=self.until,
            is_from_start=self.is_from_start,
            reason=self.reason,
        )


@dataclass(frozen=True)
class Standing:
    """Result of a trial at a rung; without a value it failed on the way there."""

    trial: Trial
    score: float
    is_paused: bool


def first_target(history: View, is_repeat: bool) -> int | None:
    """The step at which a new run pauses; ``None`` for repeats of a config,
    which are trained in full.
    """
    rungs = history.rungs
    return None if rungs is None or is_repeat else rungs.target(rungs.first)


def stretch(history: View, run: Run) -> int:
    """Number of steps that a run trains until its next pause or end; 1 without rungs."""
    rungs = history.rungs
    if rungs is None:
        return 1
    if run.is_repeat:
        return rungs.full
    goal = rungs.first if not run.attempts else run.until or rungs.full
    return goal - run.resumed_from


def room(history: View, budget: int, n_reserved: int = 0) -> int:
    """Number of new configs that the budget allows, after reserving steps for promotions."""
    rungs = history.rungs
    if rungs is None:
        return max(budget - history.n_suggested, 0)
    left = (1 - FINISH) * budget - history.spent - n_reserved / rungs.full
    return max(math.floor(left * rungs.full / rungs.first + 1e-9), 0)


def standings(history: View, step: int) -> list[Standing]:
    """All trials that were seen at a rung, best first; ties go to the earlier trial."""
    found = []
    for trial in history.suggested:
        run = trial.first
        if step in run.pauses:
            score = history.score(run.pauses[step].value)
            found.append(Standing(trial, score, run.is_paused and run.until == step))
        elif run.ending is not None and run.ending.teaches == "worst" and run.until == step:
            found.append(Standing(trial, -math.inf, False))
    return sorted(found, key=lambda one: (-one.score, one.trial.id))


def due_promotions(
    history: View, budget: int | None, is_ending: bool, slots: int = 1
) -> list[Promotion]:
    """The paused runs that are to continue now, higher rungs first, then best first.

    Args:
        history: of the search.
        budget: in full trainings; ``None`` for no limit.
        is_ending: whether no new config will start: then the best runs continue even if they are
            not in the top of their rung.
        slots: number of runs that can be active at once.
    """
    rungs = history.rungs
    if rungs is None:
        return []
    due: list[Promotion] = []
    left = math.inf if budget is None else (budget - history.spent) * rungs.full + 1e-6
    n_finishing = max(N_FINISHING, slots) if is_ending else 0
    for one in _in_order(history, rungs, n_finishing):
        if one.n_steps <= left:
            due.append(one)
            left -= one.n_steps
    return due


def _in_order(history: View, rungs: Rungs, n_finishing: int) -> Iterator[Promotion]:
    told = set[int]()
    for step in reversed(rungs.lower):
        seen = standings(history, step)
        n_best = len(seen) // rungs.eta
        for rank, one in enumerate(seen[:n_best], start=1):
            if one.is_paused and math.isfinite(one.score):
                told.add(one.trial.id)
                yield _promotion(history, rungs, one, f"{rank} of {len(seen)} at step {step}")
    for one in _design(history, rungs):
        if one.trial.id not in told:
            told.add(one.trial.id)
            yield _promotion(history, rungs, one, "among the best of the design")
    yield from _finishing(history, rungs, told, n_finishing)


def _design(history: View, rungs: Rungs) -> list[Standing]:
    """The best third of the initial design that is still paused, with at
    least one of each subspace.

    So every subspace has a result beyond the first rung, unless there are too many subspaces.
    """
    design = [trial for trial in history.suggested if trial.source == "design"]
    if design_left(history) or any(trial.is_open and not trial.first.pauses for trial in design):
        return []
    first = min(rungs.lower)
    numbers = {trial.id for trial in design}
    seen = [one for one in standings(history, first) if one.trial.id in numbers]
    best = {one.trial.id for one in seen[: math.ceil(DESIGN_SHARE * len(seen))]}
    if history.space.n_subspaces <= MAX_DESIGN_SUBSPACES:
        own: dict[int, int] = {}
        for one in seen:
            own.setdefault(one.trial.subspace, one.trial.id)
        best |= set(own.values())
    return [one for one in seen if one.is_paused and one.trial.id in best]


def _finishing(history: View, rungs: Rungs, told: set[int], n: int) -> Iterator[Promotion]:
    """The best of the highest rungs, while fewer than ``n`` runs are active."""
    n_left = n - len(told) - len(history.open_runs)
    for step in reversed(rungs.lower):
        for one in standings(history, step):
            if n_left <= 0:
                return
            if one.is_paused and one.trial.id not in told and math.isfinite(one.score):
                n_left -= 1
                yield _promotion(history, rungs, one, "the budget ends: the best go on")


def _promotion(history: View, rungs: Rungs, one: Standing, reason: str) -> Promotion:
    run = one.trial.first
    goal = rungs.above(run.step)
    is_from_start = not rungs.resumes or run.number in history.retired
    n_steps = goal - (0 if is_from_start else run.step)
    return Promotion(run.number, rungs.target(goal), reason, n_steps, is_from_start)


def agreement(history: View, low: int, high: int) -> tuple[float, int]:
    """Rank correlation of two rungs over the trials seen at both, and their number."""
    pairs = [pair for trial in history.suggested if (pair := _pair(history, trial, low, high))]
    return _correlation(pairs), len(pairs)


def misleading_rungs(history: View) -> list[tuple[int, float]]:
    """Rungs to drop, with their rank correlation."""
    rungs = history.rungs
    if rungs is None:
        return []
    found = []
    for low in rungs.lower:
        if low in rungs.dropped:
            continue
        high = rungs.above(low)
        pairs = [p for trial in history.suggested if (p := _pair(history, trial, low, high))]
        if len(pairs) >= MIN_COMMON:
            now = _correlation(pairs)
            if _bound(now, len(pairs)) < MIN_AGREEMENT:
                found.append((low, now))
    return found


def _bound(correlation: float, n: int) -> float:
    """Upper confidence bound of a correlation over ``n`` pairs, by Fisher's transformation."""
    inside = min(max(correlation, -1 + 1e-9), 1 - 1e-9)
    return math.tanh(math.atanh(inside) + SURE / math.sqrt(n - 3))


def _pair(history: View, trial: Trial, low: int, high: int) -> tuple[float, float] | None:
    """A trial's scores at two rungs, if it was seen at both."""
    run, rungs = trial.first, history.rungs
    assert rungs is not None
    if low not in run.pauses:
        return None
    at_high = run.pauses[high].value if high in run.pauses else None
    if high == rungs.full and trial.values:
        at_high = run.value
    return None if at_high is None else (run.pauses[low].value, at_high)


def _correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Spearman correlation; 1 if undefined."""
    both = np.array(pairs)
    if len(pairs) < 2 or (np.ptp(both, axis=0) == 0).any():
        return 1.0
    found = float(spearmanr(both).statistic)
    return found if math.isfinite(found) else 1.0
