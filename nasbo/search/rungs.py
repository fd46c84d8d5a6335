"""Promotion between rungs: who pauses where, who goes on, and what the budget still pays.

Successive halving by promotion: a trial runs to its rung, pauses, and goes on when it is among the
best of all that were seen there, over all subspaces together. All of it follows from the history,
so that a search that was interrupted promotes the same trials.
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
"""The last part of the budget: no new config begins, so that what was begun can be trained on."""
N_FINISHING = 3
"""So many at a time, or as many as slots, go on then without being the best of their rung."""
DESIGN_SHARE = 1 / 3
"""Part of the initial design that goes on to the second rung."""
MIN_COMMON, MIN_AGREEMENT, SURE = 8, 0.3, 1.64
"""A rung whose ranks agree less with the next one's, on so many trials, is dropped. Trials that
went on are the best of the lower rung, whose ranks agree less than those of all: it must be less
with a probability of 95 %, or rungs that tell well are dropped by chance."""


@dataclass(frozen=True)
class Promotion:
    """A paused run that is to go on.

    Attributes:
        run: its number.
        until: its next rung; ``None`` for a full training.
        reason: in words, for people.
        n_steps: what it costs of the budget.
        is_from_start: whether it begins again, as nothing is there to continue from.
    """

    run: int
    until: int | None
    reason: str
    n_steps: int
    is_from_start: bool

    @property
    def event(self) -> Targeted:
        """As the journal has it."""
        return Targeted(
            run=self.run,
            until=self.until,
            is_from_start=self.is_from_start,
            reason=self.reason,
        )


@dataclass(frozen=True)
class Standing:
    """How a trial did at a rung; without a value it failed on the way there."""

    trial: Trial
    score: float
    is_paused: bool


def first_target(history: View, is_repeat: bool) -> int | None:
    """Where a new run pauses; repeats of a config are trained in full."""
    rungs = history.rungs
    return None if rungs is None or is_repeat else rungs.target(rungs.first)


def stretch(history: View, run: Run) -> int:
    """How many steps a run trains on its next way to a worker; 1 where there are no rungs."""
    rungs = history.rungs
    if rungs is None:
        return 1
    if run.is_repeat:
        return rungs.full
    goal = rungs.first if not run.attempts else run.until or rungs.full
    return goal - run.resumed_from


def room(history: View, budget: int, n_reserved: int = 0) -> int:
    """How many new configs the budget pays, beside so many steps of promotions."""
    rungs = history.rungs
    if rungs is None:
        return max(budget - history.n_suggested, 0)
    left = (1 - FINISH) * budget - history.spent - n_reserved / rungs.full
    return max(math.floor(left * rungs.full / rungs.first + 1e-9), 0)


def standings(history: View, step: int) -> list[Standing]:
    """All trials that were seen at a rung, the best first; earlier ones first among equals."""
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
    """The paused runs that are to go on now, higher rungs first, the best of a rung first.

    Args:
        history: of the search.
        budget: in full trainings; ``None`` for no limit.
        is_ending: whether no new config begins any more: then the best go on although they are not
            among the best of so many.
        slots: how many runs there can be at once.
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
    """The best third of the initial design, one of each subspace at least, if it still waits.

    Every subspace has a result beyond the first rung then, where there are not too many of them.
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
    """The best of the highest rungs, as long as fewer than ``n`` are on their way."""
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
    """Rank correlation of two rungs over the trials that were seen at both, and how many."""
    pairs = [pair for trial in history.suggested if (pair := _pair(history, trial, low, high))]
    return _correlation(pairs), len(pairs)


def misleading_rungs(history: View) -> list[tuple[int, float]]:
    """Rungs to be dropped, with their agreement."""
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
    """What a correlation over ``n`` pairs is below, by Fisher's transformation."""
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
    """Spearman's, 1 where it cannot be told."""
    both = np.array(pairs)
    if len(pairs) < 2 or (np.ptp(both, axis=0) == 0).any():
        return 1.0
    found = float(spearmanr(both).statistic)
    return found if math.isfinite(found) else 1.0
