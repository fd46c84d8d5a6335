"""Finalist: a config that was trained in full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nasbo.history import Run, Trial


@dataclass(frozen=True)
class Finalist:
    """A config that was trained in full.

    Attributes:
        rank: its rank in the search, from 1.
        trial: its trial in the finalists' sweep.
        trainings: its finished trainings, with different seeds.
        facts: the trainer's facts about the exported network.
    """

    rank: int
    trial: Trial
    trainings: list[Run]
    facts: dict[str, Any]

    @property
    def values(self) -> list[float]:
        """Final metric of each training."""
        return [run.value for run in self.trainings if run.value is not None]
