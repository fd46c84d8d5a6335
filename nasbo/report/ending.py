"""Text about the end of a run: its result, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nasbo.history import View
from nasbo.report.progress import duration
from nasbo.search.repeats import is_complete
from nasbo.sweeps.spending import budget_text
from nasbo.sweeps.valueless import UNJUDGED

if TYPE_CHECKING:
    from nasbo.tune.run import Outcome


def result_line(outcome: Outcome, budget: int, seconds: float) -> str:
    """How a run ended, what it has done, and why it ended early.

    A run that used its budget and has no value has failed.
    """
    history = outcome.history
    is_bare = outcome.state == "finished" and not has_result(history)
    state = "failed" if is_bare else outcome.state
    n_rounds, n_failed = len(history.rounds), history.state_counts()["failed"]
    parts = [f"{budget_text(history, budget)} in {n_rounds} round{'' if n_rounds == 1 else 's'}"]
    if n_failed or state == "finished":
        parts.append(f"{n_failed} failed")
    told = f"{state}: {', '.join([*parts, duration(seconds)])}"
    return f"{told}; {outcome.reason}" if outcome.reason else told


def what_next(name: str, outcome: Outcome, budget: int) -> str:
    """What to do after a run that has not finished with a value; "" if there is nothing."""
    history = outcome.history
    if outcome.state == "finished" and has_result(history):
        return ""
    if has_result(history) or outcome.state not in ("failed", "finished"):
        return f"continue with: nasbo resume {name}"
    if is_complete(history, budget):
        return f"fix it, then nasbo resume {name} --trials N, or remove {name} and start again"
    if outcome.reason.startswith(UNJUDGED):
        return (
            f"fix the trainer and continue with nasbo resume {name}; for another metric remove "
            f"{name} and run again with --metric NAME"
        )
    return f"fix it and continue with nasbo resume {name}, or remove {name} and start again"


def has_result(history: View) -> bool:
    """Whether a trial of this search has a value; with rungs also after a partial training."""
    is_partial = history.rungs is not None and any(t.partial for t in history.suggested)
    return history.has_own_result or is_partial
