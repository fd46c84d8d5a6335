"""Text about searches in which no trial has a value."""

from __future__ import annotations

from nasbo.history import Ending, Trial, View

UNJUDGED = "no trial can be judged"
"""How the reason begins why a sweep without the metric has ended."""


def valueless_text(history: View) -> str:
    """How many trials ended without a value, by cause; for a search without any value."""
    causes = history.cause_counts()
    if not causes:
        return "nothing has finished yet"
    n_open = sum(trial.is_open for trial in history.suggested)
    counts = [f"{n} {cause}" for cause, n in causes.most_common()]
    told = "no trial has a value" + (" yet" if n_open else "")
    return f"{told}: {', '.join([*counts, *([f'{n_open} open'] if n_open else [])])}"


def first_crash(history: View) -> Trial | None:
    """The first trial that crashed, whose folder has the traceback."""
    crashed = (trial for trial in history.suggested if trial.first.ending is Ending.CRASHED)
    return next(crashed, None)
