"""Runs as trackers keep them: a sweep, its trials and their repeats, all of one kind."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from nasbo.history import Run, Trial, View, json_safe
from nasbo.limits import numbers_of
from nasbo.sweeps.folder import SweepFolder
from nasbo.sweeps.rows import OWN
from nasbo.sweeps.spending import budget_text

Kind = Literal["sweep", "finalists", "trial", "repeat"]
SWEEP = "sweep"
"""Key of the run that stands for the sweep itself."""
_LEFT_OUT = ("address", "provenance", "storage_path", "working_folder")
"""Settings that say where a sweep ran, not what it is."""


@dataclass(frozen=True)
class Point:
    """Metrics at one step."""

    step: int
    time: float
    values: Mapping[str, float]


@dataclass(frozen=True)
class TrackedRun:
    """What a tracker is to hold of one run.

    Attributes:
        key: unique in the sweep; with the sweep's identity it says which run of a tracker this is.
        name: shown to people.
        kind: of the run.
        parent: key of the run that it belongs to; ``None`` for the sweep.
        state: as journals write it, or ``interrupted`` where no driver holds a run.
        is_open: whether it goes on, or is to.
        is_failure: whether its state is a failure of the config.
        params: settings or the config, flat.
        tags: texts that may change.
        points: at most one for each step.
        value: the mean of so many ``n_values``, for a run that has finished.
        start: when it began, in seconds since 1970.
        end: when it ended or paused.
    """

    key: str
    name: str
    kind: Kind
    parent: str | None
    state: str
    is_open: bool
    is_failure: bool
    start: float
    end: float | None
    params: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    points: Sequence[Point] = ()
    value: float | None = None
    n_values: int = 0


def identity(history: View) -> str:
    """What tells a sweep from all others, wherever its folder lies, and stays when it goes on."""
    assert history.settings is not None
    begun = (history.settings.time, history.settings.space, history.settings.seed)
    return hashlib.sha256(json.dumps(begun).encode()).hexdigest()[:16]


def sweep_run(sweep: SweepFolder, name: str, state: str, prefix: str) -> TrackedRun:
    """The run that stands for a sweep or, with a prefix, for its finalists."""
    history = sweep.history
    assert history.settings is not None
    is_final = bool(prefix)
    return TrackedRun(
        key=prefix.rstrip("/") or SWEEP,
        name=name,
        kind="finalists" if is_final else "sweep",
        parent=SWEEP if is_final else None,
        state=state,
        is_open=state == "running",
        is_failure=False,
        start=history.settings.time,
        end=None if state == "running" else history.last_time,
        params=_sweep_params(sweep),
        tags=_sweep_tags(sweep, state),
        points=best_points(history, sweep.metric),
    )


def _sweep_params(sweep: SweepFolder) -> dict[str, Any]:
    settings = asdict(sweep.settings) | {"space": Path(sweep.settings.space).stem}
    settings |= {"metric": sweep.metric}
    kept = {name: value for name, value in settings.items() if name not in _LEFT_OUT}
    return dict(_flat("", json_safe(kept)))


def _flat(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Nested settings by dotted names, without those that say nothing."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{name}.", value)
        elif value not in (None, "", []):
            yield f"{prefix}{name}", value


def _sweep_tags(sweep: SweepFolder, state: str) -> dict[str, str]:
    history, best = sweep.history, sweep.history.best
    tags = {"state": state, "folder": sweep.name, "used": budget_text(history, sweep.budget)}
    if best is not None and best.last_value is not None:
        tags |= {"best_trial": str(best.id), "best_value": repr(best.last_value)}
        if best.estimate is not None:
            tags["best_estimate"] = repr(best.estimate.mean)
        if best.partial is not None:
            tags["best_step"] = str(best.partial.step)
    return tags


def best_points(history: View, metric: str) -> list[Point]:
    """The best value so far, by how many trials have ended for good; never taken back."""
    ended = [t for t in history.trials if not t.is_open and t.state != "paused"]
    points: list[Point] = []
    best: float | None = None
    for n, trial in enumerate(sorted(ended, key=lambda t: (t.ended_at or 0.0, t.id)), start=1):
        is_known = trial.value is not None and trial.is_comparable
        if is_known and history.objectives.is_better(trial.value or 0.0, best):
            best = trial.value
        if best is not None:
            points.append(Point(n, trial.ended_at or 0.0, {f"best/{metric}": best}))
    return points


def trial_runs(
    history: View, trial: Trial, metric: str, prefix: str, is_driven: bool
) -> Iterator[TrackedRun]:
    """The runs of a trial that have begun, or ended without, as one that has a twin.

    Args:
        history: of the sweep.
        trial: its trial.
        metric: name of the value.
        prefix: of the keys.
        is_driven: whether a driver holds the runs that are open.
    """
    for run in trial.runs:
        if run.attempts or not run.is_open:
            yield _trial_run(history, trial, run, (metric, prefix, is_driven))


def _trial_run(history: View, trial: Trial, run: Run, context: tuple[str, str, bool]) -> TrackedRun:
    metric, prefix, is_driven = context
    state = run.cause or run.state
    is_lost = run.is_open and not is_driven
    sweep_key = prefix.rstrip("/") or SWEEP
    name = f"trial {trial.id:05d}"
    value, n_values = (run.value, 1) if run.is_repeat else (trial.value, len(trial.values))
    return TrackedRun(
        key=f"{prefix}{run.number:05d}",
        name=f"{name} repeat {run.number:05d}" if run.is_repeat else name,
        kind="repeat" if run.is_repeat else "trial",
        parent=f"{prefix}{trial.id:05d}" if run.is_repeat else sweep_key,
        state="interrupted" if is_lost else state,
        is_open=run.is_open and is_driven,
        is_failure=run.state == "failed" and run.ending is not None and run.ending.is_failure,
        start=run.attempts[0].start if run.attempts else run.created_at,
        end=history.last_time if is_lost else run.ended_at,
        params=dict(trial.config),
        tags=_trial_tags(history, trial, run) | {"state": "interrupted" if is_lost else state},
        points=points_of(run, metric),
        value=value if run.state == "finished" else None,
        n_values=n_values if run.state == "finished" else 0,
    )


def _trial_tags(history: View, trial: Trial, run: Run) -> dict[str, str]:
    tags = {
        "trial": str(trial.id),
        "subspace": history.subspace(trial).id,
        "source": "repeat" if run.is_repeat else trial.source,
        "attempts": str(len(run.attempts)),
        "message": run.message,
        "repeat_of": str(trial.id) if run.is_repeat else "",
        "twin": "" if run.is_repeat or trial.twin is None else str(trial.twin),
        "rung": "" if history.rungs is None or not run.pauses else str(max(run.pauses)),
        "search_trial": str(trial.info.get("search_trial", "")),
    }
    return {name: text for name, text in tags.items() if text}


def points_of(run: Run, metric: str) -> list[Point]:
    """What a run reported: one point for each step, the first, as trackers take none back.

    A run that breaks off and goes on from a checkpoint reports steps again; one without a report,
    as it returned its result, has a point at its end.
    """
    found: dict[int, Point] = {}
    for one in run.measurements:
        values = _numbers(one.metrics, one.value, metric)
        if values and one.step not in found:
            found[one.step] = Point(one.step, one.time, values)
    if run.ended_at is not None and run.step not in found:
        values = _numbers(run.metrics, run.value, metric)
        if values:
            found[run.step] = Point(run.step, run.ended_at, values)
    return list(found.values())


def _numbers(metrics: Mapping[str, Any], value: float | None, metric: str) -> dict[str, float]:
    """The numbers of a report, with the value under the metric's name."""
    try:
        found = numbers_of(metrics)
    except OverflowError:  # a whole number that no float can hold
        found = {}
    own = {name: number for name, number in found.items() if not name.startswith(OWN)}
    return own if value is None else {metric: value, **own}
