"""Tables of a sweep's rungs and of its paused trials."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from nasbo.history import Rungs, Trial, View
from nasbo.search.rungs import Standing, agreement, standings


@dataclass(frozen=True)
class RungRow:
    """Statistics of a rung.

    Attributes:
        step: of the rung; the last one is a full training.
        n_seen: number of configs that were seen there, or failed on the way.
        best: best value there.
        n_promoted: number of those that continued.
        n_paused: number of those that are paused there.
        n_failed: number of those that failed on the way.
        agreement: rank correlation with the next rung; ``None`` for fewer than two trials.
        n_common: number of trials that were seen at both.
        is_dropped: whether no further trial pauses there.
    """

    step: int
    n_seen: int
    best: float | None
    n_promoted: int
    n_paused: int
    n_failed: int
    agreement: float | None
    n_common: int
    is_dropped: bool

    def to_json(self) -> dict[str, Any]:
        """The row as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Waiting:
    """A paused trial and its rank at its rung.

    Attributes:
        trial: its number.
        step: of the rung.
        value: its value there.
        rank: its rank among the trials seen there.
        n_seen: number of trials seen there.
        n_best: number of trials that are promoted.
        is_retired: whether its checkpoint was removed.
    """

    trial: int
    step: int
    value: float
    rank: int
    n_seen: int
    n_best: int
    is_retired: bool

    @property
    def reason(self) -> str:
        """Why it is paused, as text."""
        go_on = {0: "none goes on yet", 1: "1 goes on"}.get(self.n_best, f"{self.n_best} go on")
        if self.rank <= self.n_best:
            go_on = "goes on if the budget pays it"
        words = f"{ordinal(self.rank)} of {self.n_seen} at step {self.step}; {go_on}"
        return f"{words}; its checkpoint was removed" if self.is_retired else words

    def to_json(self) -> dict[str, Any]:
        """The trial and its reason as plain values."""
        return {**asdict(self), "reason": self.reason}


def rung_rows(history: View) -> list[RungRow]:
    """One row per rung, lowest first; empty without rungs."""
    rungs = history.rungs
    return [] if rungs is None else [_row(history, rungs, step) for step in rungs.steps]


def _row(history: View, rungs: Rungs, step: int) -> RungRow:
    seen = seen_at(history, step)
    known = [one for one in seen if math.isfinite(one.score)]
    common, n_common = (0.0, 0)
    if step < rungs.full:
        common, n_common = agreement(history, step, rungs.above(step))
    return RungRow(
        step=step,
        n_seen=len(seen),
        best=history.score(known[0].score) if known else None,
        n_promoted=sum(step in promoted_at(one.trial) for one in seen),
        n_paused=sum(one.is_paused for one in seen),
        n_failed=len(seen) - len(known),
        agreement=common if n_common > 1 else None,
        n_common=n_common,
        is_dropped=step in rungs.dropped,
    )


def seen_at(history: View, step: int) -> list[Standing]:
    """All trials that were seen at a rung, best first; at the last rung those trained in full.

    Their values are comparable, as they are of the same step. A trial that failed on the way has
    no value and comes last.
    """
    if history.rungs is None or step < history.rungs.full:
        return standings(history, step)
    found = []
    for trial in history.suggested:
        if trial.value is not None:
            found.append(Standing(trial, history.score(trial.value), False))
        elif _failed_on_the_last_way(trial):
            found.append(Standing(trial, -math.inf, False))
    return sorted(found, key=lambda one: (-one.score, one.trial.id))


def _failed_on_the_last_way(trial: Trial) -> bool:
    run = trial.first
    is_worst = run.ending is not None and run.ending.teaches == "worst"
    return is_worst and bool(run.attempts) and run.until is None


def promoted_at(trial: Trial) -> list[int]:
    """The rungs from which a trial was promoted."""
    return [step for step in trial.first.pauses if trial.first.until != step]


def rung_of(history: View, trial: Trial) -> int | None:
    """The highest rung at which a trial was seen; ``None`` before the first, or without rungs."""
    if history.rungs is None:
        return None
    if trial.value is not None:
        return history.rungs.full
    return max(trial.first.pauses, default=None)


def waiting(history: View) -> list[Waiting]:
    """The paused trials, highest rung first, then best first."""
    rungs = history.rungs
    return [] if rungs is None else [one for s in reversed(rungs.lower) for one in _at(history, s)]


def _at(history: View, step: int) -> list[Waiting]:
    assert history.rungs is not None
    seen = standings(history, step)
    n_best = len(seen) // history.rungs.eta
    return [
        Waiting(
            one.trial.id,
            step,
            one.trial.first.pauses[step].value,
            rank,
            len(seen),
            n_best,
            one.trial.first.number in history.retired,
        )
        for rank, one in enumerate(seen, start=1)
        if one.is_paused
    ]


def ordinal(number: int) -> str:
    """An ordinal number: 1st, 2nd, 13th."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10)
    return f"{number}{ending or 'th'}"


def at_step(history: View, trial: Trial) -> str:
    """Suffix for the value of a trial that was trained in part: its step; else empty."""
    return "" if trial.partial is None else step_words(history, trial.partial.step)


def step_words(history: View, step: int) -> str:
    """Suffix for a value at a step, with that of a full training if there are rungs."""
    of = "" if history.rungs is None else f" of {history.rungs.full}"
    return f" at step {step}{of}"
