"""A config that was trained in full, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nasbo.history import Run, Trial


@dataclass(frozen=True)
class Finalist:
    """A config that was trained in full.

    Attributes:
        rank: its position in the ranking of the search, from 1.
        trial: its first training.
        trainings: all of its trainings that finished, with different seeds.
        facts: what the trainer says of the exported network.
    """

    rank: int
    trial: Trial
    trainings: list[Run]
    facts: dict[str, Any]

    @property
    def values(self) -> list[float]:
        """The final metric of each training."""
        return [run.value for run in self.trainings if run.value is not None]
