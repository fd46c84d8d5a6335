"""Parsing of Tune's result dictionaries: step, value and metrics."""

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
    """The trainer's own metrics, without the step, Tune's entries and the config."""
    return {
        key: value
        for key, value in result.items()
        if key not in _TUNE_KEYS and not key.startswith("config/")
    }


def step_of(result: Mapping[str, Any]) -> int:
    """The step that the session reported, else the number of reports."""
    return int(result.get(STEP) or result.get("training_iteration") or 0)


def finite_number(value: Any) -> float | None:
    """The value as a finite float, or ``None``."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) < float("inf") else None
