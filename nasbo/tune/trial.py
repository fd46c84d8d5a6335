"""One trial inside a Ray worker: the trainer is called, its reports and its ending go to Tune."""

from __future__ import annotations

import math
import os
import traceback
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ray import tune

from nasbo.trainer import cause_of, load_trainer

VALUE, CAUSE, MESSAGE = "nasbo_value", "nasbo_cause", "nasbo_message"


@dataclass(frozen=True)
class TrialTask:
    """What all trials of a sweep share."""

    folder: str
    trainer: str
    metric: str | None
    seed: int
    options: dict[str, Any] = field(default_factory=dict)
    working_folder: str = ""


def trial_folder(sweep_folder: str | os.PathLike[str], number: int) -> Path:
    """Where a trial keeps its checkpoints and logs."""
    return Path(sweep_folder) / "trials" / f"{number:05d}"


class TuneSession:
    """The session that a trainer is handed inside a Ray worker."""

    def __init__(self, task: TrialTask, number: int) -> None:
        self.folder = trial_folder(task.folder, number)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.seed = zlib.crc32(f"{task.seed}/{number}".encode())
        self.options: Mapping[str, Any] = task.options
        self.has_reported = False
        self._metric = task.metric

    def report(self, metrics: dict[str, float]) -> None:
        """Hand the metrics to Tune, with the one that drives the search under its own key."""
        value = pick_value(metrics, self._metric)
        self.has_reported = True
        tune.report({**metrics, VALUE: value})


class MissingMetricError(LookupError):
    """A trainer's result does not hold the metric of the sweep."""

    cause = "no result"


def pick_value(result: Any, metric: str | None) -> float:
    """The value that drives the search, from whatever a trainer returns or reports."""
    if not isinstance(result, Mapping):
        return _as_number(result, "the trainer's result")
    if metric is None and len(result) == 1:
        metric = next(iter(result))
    if metric is None or metric not in result:
        known = ", ".join(map(str, result)) or "nothing"
        wanted = f"the metric {metric!r}" if metric else "--metric NAME"
        raise MissingMetricError(f"{wanted} is needed; the trainer gave {known}")
    return _as_number(result[metric], f"the metric {metric!r}")


def _as_number(value: Any, what: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise MissingMetricError(f"{what} must be a number, got {type(value).__name__}") from error


def run_trial(config: dict[str, Any], task: TrialTask) -> None:
    """The function that Tune runs: ``config`` holds the trial's number and its config.

    Whatever the trainer raises is reported as an ending with its cause: Tune itself retries only
    what the machine did.
    """
    session = TuneSession(task, config["trial"])
    try:
        trainer = load_trainer(task.trainer, task.working_folder or None)
        _conclude(trainer(config["config"], session), session)
    except Exception as error:
        (session.folder / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
        message = f"{type(error).__name__}: {error}"[:500]
        tune.report({VALUE: math.nan, CAUSE: cause_of(error), MESSAGE: message})


def _conclude(result: Any, session: TuneSession) -> None:
    if isinstance(result, Mapping):
        session.report(dict(result))
    elif result is not None:
        tune.report({VALUE: pick_value(result, None)})
    elif not session.has_reported:
        raise MissingMetricError("the trainer neither reported nor returned anything")
