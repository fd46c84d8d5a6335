"""Tables of a sweep: a row per trial or per measurement, with stable columns.

Columns of trials (``trial_rows``; repeats have rows of their own):

================== ==============================================================================
trial              its number, which its folder ``trials/NUMBER`` has too
round              in which it was decided; -1 for repeats and for results from elsewhere
subspace           the structural choices of its config
source             design, model, probe, fallback, observed or repeat
state              waiting, running, paused, finished, or the cause by which it failed
value              of the metric; the mean where it was repeated
n_values           how many values that mean has
repeat_of, twin    the trial whose config it repeats, or whose result it took over
step               of the last report
attempts           how often it was begun
seconds            of all attempts that have ended; ``seconds_by_attempt`` of each
message            why it failed or was retried
predicted          what the surrogate predicted; ``predicted_low`` and ``predicted_high`` are one
                   standard deviation away
estimate           of the noise-free value, where the method has found noise and the trial may be
                   the best; ``estimate_sd`` is its standard deviation
last_value         with rungs: the value or, of a trial that was trained in part, that of its last
                   pause, while ``value`` stays empty; without rungs always empty
rung               with rungs: step of the highest one at which it was seen; without always empty
on_front           only with several objectives: whether no other trial dominates it
metrics.NAME       every metric of the last report
config.NAME        every parameter; lists are JSON in CSV
================== ==============================================================================

Columns of measurements (``measurement_rows``): trial, step, time, value and ``metrics.NAME``.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nasbo.history import PREDICTION, Ending, Run, Trial, View
from nasbo.sweeps.rungs import rung_of

Row = dict[str, Any]
OWN = "nasbo_"
"""Prefix of the sweep's own metrics."""


def trial_rows(history: View) -> list[Row]:
    """One row per run, in the order of the numbers; ``config`` and ``metrics`` are mappings."""
    front = {trial.id for trial in history.front} if len(history.objectives) > 1 else None
    rows = [_row(history, trial, run, front) for trial in history.trials for run in trial.runs]
    return sorted(rows, key=lambda row: int(row["trial"]))


def _row(history: View, trial: Trial, run: Run, front: set[int] | None) -> Row:
    is_mean = not run.is_repeat and (trial.value is not None or history.rungs is not None)
    known = None if run.is_repeat else trial.estimate
    seconds = [round(a.end - a.start, 3) for a in run.attempts if a.end is not None]
    return {
        "trial": run.number,
        "round": -1 if run.is_repeat else trial.round,
        "subspace": history.subspace(trial).id,
        "source": "repeat" if run.is_repeat else trial.source,
        "state": run.cause or run.state,
        "value": trial.value if is_mean else run.value,
        "n_values": len(trial.values) if is_mean else int(run.ending is Ending.FINISHED),
        "repeat_of": trial.id if run.is_repeat else None,
        "twin": None if run.is_repeat else trial.twin,
        "step": run.step,
        "attempts": len(run.attempts),
        "seconds": round(run.seconds, 3),
        "seconds_by_attempt": seconds,
        "message": run.message,
        **{key: None if run.is_repeat else trial.info.get(key) for key in PREDICTION},
        "estimate": known.mean if known else None,
        "estimate_sd": known.sd if known else None,
        **_rung_columns(history, trial, run),
        **({} if front is None else {"on_front": trial.id in front and not run.is_repeat}),
        "metrics": _plain(run.metrics),
        "config": trial.config,
    }


def _rung_columns(history: View, trial: Trial, run: Run) -> Row:
    if history.rungs is None:
        return {"last_value": None, "rung": None}
    if run.is_repeat:
        return {"last_value": run.value, "rung": None if run.value is None else history.rungs.full}
    return {"last_value": trial.last_value, "rung": rung_of(history, trial)}


def measurement_rows(history: View) -> list[Row]:
    """One row per report of each run; a restart may report a step again."""
    return [
        {
            "trial": run.number,
            "step": one.step,
            "time": one.time,
            "value": one.value,
            "metrics": _plain(one.metrics),
        }
        for run in history.runs
        for one in run.measurements
    ]


def _plain(metrics: Mapping[str, Any]) -> Row:
    return {name: value for name, value in metrics.items() if not name.startswith(OWN)}


def flat(rows: Sequence[Row], parameters: Iterable[str] = ()) -> tuple[list[str], list[Row]]:
    """Columns and rows with ``metrics.NAME`` and ``config.NAME`` instead of mappings.

    Args:
        rows: from ``trial_rows`` or ``measurement_rows``.
        parameters: names of the space, each of which gets a column.
    """
    found = [_flat_row(row) for row in rows]
    columns = dict.fromkeys(name for row in found for name in row)
    inner = [name for name in columns if name.startswith(("metrics.", "config."))]
    plain = [name for name in columns if name not in inner]
    metrics = [name for name in inner if name.startswith("metrics.")]
    return [*plain, *metrics, *(f"config.{name}" for name in parameters)], found


def _flat_row(row: Row) -> Row:
    plain = {name: value for name, value in row.items() if name not in ("metrics", "config")}
    for group in ("metrics", "config"):
        plain |= {f"{group}.{name}": value for name, value in row.get(group, {}).items()}
    return plain


def to_csv(rows: Sequence[Row], parameters: Iterable[str] = ()) -> str:
    """Rows as CSV, with lists and mappings as JSON."""
    columns, found = flat(rows, parameters)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(name)) for name in columns] for row in found)
    return text.getvalue()


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | tuple | dict) else value
