"""Stopping rules: how far a run is trained, and which paused runs continue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from nasbo.history import Measurement, Run, View


class Verdict(Enum):
    """Answer to a training that reports."""

    GO_ON = "go on"
    PAUSE = "pause"
    STOP = "stop"


@dataclass(frozen=True)
class StoppingRule:
    """How far runs are trained; by default to their end.

    A rule must depend on the history alone, as it is asked again after a restart.

    Attributes:
        until: step at which a new run is to pause; ``None`` for its end.
        verdict: called at each report before that step; ``None`` if it never stops a run.
        due: numbers of the paused runs that are to continue now, each with its next target.
    """

    until: Callable[[Run], int | None] = lambda run: None
    verdict: Callable[[Run, Measurement], Verdict] | None = None
    due: Callable[[View], Sequence[tuple[int, int | None]]] = lambda history: ()


TO_THE_END = StoppingRule()
