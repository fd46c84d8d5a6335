"""Past sweeps: other searches whose results a history has taken in."""

from __future__ import annotations

from dataclasses import dataclass

from nasbo.history.objectives import Objectives
from nasbo.history.records import Trial
from nasbo.space import Space, load_space
from nasbo.space.plain_yaml import read_yaml


@dataclass(frozen=True)
class Past:
    """Another sweep, as far as its results were taken in: its own folder is not needed.

    Attributes:
        name: its folder or URL as the user knows it; its trials name it as their origin.
        digest: SHA-256 of its journal when it was read.
        yaml: its space, as a space file has it.
        objectives: what it was searched for.
        trials: its results, under the numbers of the history that took them in.
    """

    name: str
    digest: str
    yaml: str
    objectives: Objectives
    trials: tuple[Trial, ...] = ()

    @property
    def space(self) -> Space:
        """What was searched; it may differ from the space of the history."""
        return load_space(read_yaml(self.yaml))
