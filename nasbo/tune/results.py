"""A result of Tune comes in; the step, the number and the metrics that nasbo needs go out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STEP = "nasbo_step"
_TUNE_KEYS = (
    STEP,
    "checkpoint_dir_name",
    "date",
    "done",
    "experiment_tag",
    "hostname",
    "iterations_since_restore",
    "node_ip",
    "pid",
    "should_checkpoint",
    "time_since_restore",
    "time_this_iter_s",
    "time_total_s",
    "timestamp",
    "training_iteration",
    "trial_id",
)


def own_metrics(result: Mapping[str, Any]) -> dict[str, Any]:
    """What the trainer itself reported, without the step, Tune's own entries and the config."""
    return {
        key: value
        for key, value in result.items()
        if key not in _TUNE_KEYS and not key.startswith("config/")
    }


def step_of(result: Mapping[str, Any]) -> int:
    """How far the trial is: its session says so, else how often it has reported."""
    return int(result.get(STEP) or result.get("training_iteration") or 0)


def finite_number(value: Any) -> float | None:
    """A finite number, or ``None``."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) < float("inf") else None
