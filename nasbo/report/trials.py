"""All trials of a sweep as columns, with their learning curves: the data inside a report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from nasbo.history import PREDICTION, Trial
from nasbo.report.columns import Column, encode, plain, to_text
from nasbo.report.drawing import Box, Dot, Drawing, Line
from nasbo.report.study import Figure, Study, key_of
from nasbo.sweeps.folder import trial_name
from nasbo.sweeps.rows import OWN
from nasbo.sweeps.rungs import waiting

MAX_GROUPS = 64
"""Subspaces are told apart up to so many; beyond that trials are grouped by the first choice."""
MAX_METRIC_CELLS = 200_000
MIN_METRICS = 4
MAX_FILES = 12
MAX_TEXT = 500
CURVE_DIGITS = 5
N_SHOWN = 6
"""Parameters that are columns of the table without being asked for."""


def trial_columns(study: Study) -> list[Column]:
    """Every column; row i is trial i of the history. Columns that would be empty are left out."""
    columns = [
        *_standing(study),
        *_parameters(study),
        *_metrics(study),
        *_details(study),
    ]
    return [one for one in columns if not one.is_empty]


def trial_data(study: Study) -> dict[str, Any]:
    """What the scripts of a page know of the trials, as plain values."""
    return {
        "metric": study.metric,
        "mode": study.mode,
        "folder": study.folder.name,
        "linked": study.is_linked,
        "rungs": list(study.history.rungs.lower) if study.history.rungs else [],
        "columns": [column.to_json() for column in trial_columns(study)],
        "curves": _curves(study),
    }


def without_words(study: Study, figure: Figure) -> Figure:
    """A figure whose marks of trials do not say what the data of the page says already.

    What a label has beyond the words of its trial stays, with the line break before it.
    """
    if figure.drawing is None:
        return figure
    words = {key_of(trial): study.words(trial) for trial in study.history.trials}
    kept = Drawing(figure.drawing.width, figure.drawing.height)
    for shape in figure.drawing.shapes:
        if isinstance(shape, Line | Box | Dot) and shape.key in words:
            shape = replace(shape, label=shape.label.removeprefix(words[shape.key]))
        kept.add(shape)
    return replace(figure, drawing=kept)


def data_element(study: Study) -> str:
    """The data as an element of a page."""
    return f'<script type="application/json" id="trial-data">{to_text(trial_data(study))}</script>'


def _standing(study: Study) -> list[Column]:
    trials = study.history.trials
    ranks = {trial.id: rank for rank, trial in enumerate(study.ranked, start=1)}
    known = [trial.estimate for trial in trials]
    seconds = [round(trial.seconds, 1) if trial.attempts else None for trial in trials]
    return [
        Column("trial", "trial", [trial.id for trial in trials], is_shown=True),
        Column("rank", "rank", [ranks.get(trial.id) for trial in trials], is_shown=True),
        Column("value", study.metric, [trial.last_value for trial in trials], is_shown=True),
        Column("expected", "expected", [e.mean if e else None for e in known], is_shown=True),
        Column("expected_sd", "± sd", [e.sd if e else None for e in known]),
        Column("state", "state", [trial.state for trial in trials], is_shown=True),
        Column("cause", "cause", [trial.cause for trial in trials], is_shown=True),
        Column(
            "subspace", "subspace", _groups(study), is_shown=study.history.space.n_subspaces > 1
        ),
        Column("source", "source", [trial.source for trial in trials], is_shown=True),
        Column("round", "round", [t.round if t.round >= 0 else None for t in trials]),
        Column("step", "last step", [trial.step or None for trial in trials]),
        Column("seconds", "seconds", seconds, is_shown=True),
        *_predictions(trials),
    ]


def _groups(study: Study) -> list[str]:
    return [study.group(trial, MAX_GROUPS) for trial in study.history.trials]


def _predictions(trials: Sequence[Trial]) -> list[Column]:
    titles = ("predicted", "predicted, low end", "predicted, high end")
    return [
        Column(name, title, [_number(trial.info.get(name)) for trial in trials])
        for name, title in zip(PREDICTION, titles, strict=True)
    ]


def _number(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else None  # type: ignore[return-value]


def _parameters(study: Study) -> list[Column]:
    """A column per parameter, lists as they are; those that matter most are shown."""
    names, trials = study.history.space.names, study.history.trials
    found = study.importance
    order = list(found.by_name()) if found and not found.doubt else list(names)
    shown = {name for name in order if name in names} and order[:N_SHOWN]
    return [
        Column(
            f"config.{name}", name, [t.config.get(name) for t in trials], "config", name in shown
        )
        for name in names
    ]


def _metrics(study: Study) -> list[Column]:
    """The metrics of the last reports; of very many in a long sweep only the first."""
    trials = study.history.trials
    names = dict.fromkeys(n for t in trials for n in t.metrics if not n.startswith(OWN))
    most = max(MIN_METRICS, MAX_METRIC_CELLS // max(len(trials), 1))
    return [
        Column(f"metrics.{name}", name, [t.metrics.get(name) for t in trials], "metric")
        for name in list(names)[:most]
    ]


def _details(study: Study) -> list[Column]:
    trials = study.history.trials
    waits = {one.trial: one.reason for one in waiting(study.history)}
    found: dict[str, Callable[[Trial], Any]] = {
        "acquisition": lambda t: t.acquisition[0] if t.acquisition else None,
        "acquisition_value": lambda t: t.acquisition[1] if t.acquisition else None,
        "expects_nothing": lambda t: True if t.info.get("expects_nothing") else None,
        "reason": lambda t: _short(t.info.get("reason")),
        "message": lambda t: _short(t.message),
        "attempts": lambda t: len(t.attempts) or None,
        "retries": lambda t: _retries(t) or None,
        "went_on": lambda t: [f"at {s}: {r}" for s, r in t.first.reasons.items()] or None,
        "waits": lambda t: waits.get(t.id),
        "twin": lambda t: t.twin,
        "values": lambda t: list(t.values) if len(t.values) > 1 else None,
        "repeats": lambda t: [[r.number, r.value, r.cause or r.state] for r in t.repeats] or None,
    }
    columns = [
        Column(name, name, [tell(trial) for trial in trials], "detail")
        for name, tell in found.items()
    ]
    return [*columns, Column("files", "files", _files(study), "detail")]


def _short(text: object) -> str | None:
    return str(text)[:MAX_TEXT] if text else None


def _retries(trial: Trial) -> list[str]:
    return [f"{n} × {cause}" for cause, n in trial.retries.items()]


def _files(study: Study) -> list[list[Any] | None]:
    """(name, bytes) of what each trial's folder holds here; folders have no size."""
    trials, root = study.history.trials, study.folder.path
    if not (root / trial_name(0)).parent.is_dir():
        return [None] * len(trials)
    return [_entries(os.path.join(root, trial_name(trial.id))) or None for trial in trials]


def _entries(folder: str) -> list[Any]:
    try:
        with os.scandir(folder) as entries:
            found = [[e.name, e.stat().st_size] if e.is_file() else [f"{e.name}/"] for e in entries]
    except OSError:  # never begun, or removed meanwhile
        return []
    return sorted(found)[:MAX_FILES]


def _curves(study: Study) -> dict[str, Any]:
    """Values of all learning curves, and their steps, which most of them share.

    ``of`` is the number in ``steps`` of each trial's list, the first steps of which are its own.
    """
    drawn = [study.curves.get(trial.id, ()) for trial in study.history.trials]
    steps = [tuple(step for step, _ in curve) for curve in drawn]
    lists = _shared(steps)
    values = [[plain(value, CURVE_DIGITS) for _, value in curve] for curve in drawn if curve]
    known = [lists[own] if own else None for own in steps]
    told = sorted(dict.fromkeys(lists.values()))
    firsts = {at: own for own, at in reversed(lists.items())}
    return {
        "steps": [firsts[at] for at in told],
        "of": encode(known),
        "mask": "".join("01"[bool(curve)] for curve in drawn),
        "values": values,
    }


def _shared(steps: Iterable[tuple[int, ...]]) -> dict[tuple[int, ...], int]:
    """Numbers of lists of steps, one for a list and all of its beginnings; the longest first."""
    found: dict[tuple[int, ...], int] = {}
    n_lists = 0
    for own in sorted(set(steps), key=lambda one: (-len(one), one)):
        if own and own not in found:
            for size in range(len(own), 0, -1):
                found.setdefault(own[:size], n_lists)
            n_lists += 1
    return found
