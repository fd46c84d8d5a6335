"""Trials as rows, of plain values or as CSV."""

from __future__ import annotations

import csv
import io
from typing import Any

from nasbo.history import History

COLUMNS = (
    *("trial", "round", "subspace", "source", "state", "value", "n_values", "repeat_of"),
    *("attempts", "seconds"),
)


def export_rows(history: History) -> list[dict[str, Any]]:
    """``COLUMNS`` and ``config`` of each trial.

    The value of a trial with repeats is the mean of ``n_values``; a repeat's own row says by
    ``repeat_of`` whose it is. ``seconds`` are those of all its ``attempts`` that have ended.
    """
    return [
        {
            "trial": trial.id,
            "round": trial.round,
            "subspace": history.subspace(trial).id,
            "source": trial.source,
            "state": trial.cause or trial.state,
            "value": trial.value,
            "n_values": len(trial.values),
            "repeat_of": trial.repeat_of,
            "attempts": len(trial.attempts),
            "seconds": round(trial.seconds, 3),
            "config": trial.config,
        }
        for trial in history.trials
    ]


def export_csv(history: History) -> str:
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
