"""History of a search: events, the trials that they describe, and the objectives.

Public: ``History`` and its read-only ``View``, what they consist of (``Trial``, ``Run``,
``Measurement``, ``Past``, ...), how runs end, objectives, and ``replay`` of a journal's lines.
"""

from nasbo.history.endings import CAUSES, Ending
from nasbo.history.front import Reference
from nasbo.history.history import History, check_settings, replay
from nasbo.history.objectives import By, Mode, Objective, Objectives
from nasbo.history.past import Past
from nasbo.history.records import (
    PREDICTION,
    SCORED_BY,
    Attempt,
    Estimate,
    Measurement,
    Pause,
    Repeating,
    Round,
    Run,
    Source,
    State,
    Trial,
    config_key,
    json_safe,
)
from nasbo.history.rungs import Rungs, parse_rungs
from nasbo.history.view import Snapshot, View

__all__ = [
    "CAUSES",
    "PREDICTION",
    "SCORED_BY",
    "Attempt",
    "By",
    "Ending",
    "Estimate",
    "History",
    "Measurement",
    "Mode",
    "Objective",
    "Objectives",
    "Past",
    "Pause",
    "Reference",
    "Repeating",
    "Round",
    "Run",
    "Rungs",
    "Snapshot",
    "Source",
    "State",
    "Trial",
    "View",
    "check_settings",
    "config_key",
    "json_safe",
    "parse_rungs",
    "replay",
]
