"""Stopping rules: how far a run is trained, and which paused ones go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from nasbo.history import Measurement, Run, View


class Verdict(Enum):
    """What a training is told when it reports."""

    GO_ON = "go on"
    PAUSE = "pause"
    STOP = "stop"


@dataclass(frozen=True)
class StoppingRule:
    """How far runs are trained; by default to their end.

    The history is all that the rule may remember: after a restart it is asked again.

    Attributes:
        until: the step at which a new run is to pause; ``None`` to its end.
        verdict: asked at each report before that step; ``None`` saves the asking.
        due: numbers of the paused runs that are to go on now, each with its next target.
    """

    until: Callable[[Run], int | None] = lambda run: None
    verdict: Callable[[Run, Measurement], Verdict] | None = None
    due: Callable[[View], Sequence[tuple[int, int | None]]] = lambda history: ()


TO_THE_END = StoppingRule()
