"""Trials as rows, of plain values or as CSV."""

from __future__ import annotations

import csv
import io
from typing import Any

from nasbo.history import Ending, Run, Trial, View

COLUMNS = (
    *("trial", "round", "subspace", "source", "state", "value", "n_values", "repeat_of"),
    *("attempts", "seconds"),
)


def export_rows(history: View) -> list[dict[str, Any]]:
    """``COLUMNS`` and ``config`` of each trial.

    The value of a trial with repeats is the mean of ``n_values``; a repeat's own row says by
    ``repeat_of`` whose it is. ``seconds`` are those of all its ``attempts`` that have ended.
    """
    rows = [_row(history, trial, run) for trial in history.trials for run in trial.runs]
    return sorted(rows, key=lambda row: int(row["trial"]))


def _row(history: View, trial: Trial, run: Run) -> dict[str, Any]:
    is_mean = not run.is_repeat and trial.value is not None
    n_own = int(run.ending is Ending.FINISHED)
    return {
        "trial": run.number,
        "round": -1 if run.is_repeat else trial.round,
        "subspace": history.subspace(trial).id,
        "source": "repeat" if run.is_repeat else trial.source,
        "state": run.cause or run.state,
        "value": trial.value if is_mean else run.value,
        "n_values": len(trial.values) if is_mean else n_own,
        "repeat_of": trial.id if run.is_repeat else None,
        "attempts": len(run.attempts),
        "seconds": round(run.seconds, 3),
        "config": trial.config,
    }


def export_csv(history: View) -> str:
    """The same as a table, with a column per parameter."""
    names = history.space.names
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, *names])
    for row in export_rows(history):
        cells = (_cell(row["config"].get(name)) for name in names)
        writer.writerow([*(row[column] for column in COLUMNS), *cells])
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return " ".join("-" if item is None else str(item) for item in value)
    return value
