"""Past sweeps: other searches whose results a history contains."""

from __future__ import annotations

from dataclasses import dataclass

from nasbo.history.objectives import Objectives
from nasbo.history.records import Trial
from nasbo.space import Space, load_space
from nasbo.space.plain_yaml import read_yaml


@dataclass(frozen=True)
class Past:
    """Another sweep, with all that is needed of it: its folder is not read again.

    Attributes:
        name: its folder or URL as given by the user; its trials have it as their origin.
        digest: SHA-256 of its journal when it was read.
        yaml: its space, as a space file.
        objectives: its objectives.
        trials: its results, under the numbers of the history that contains them.
    """

    name: str
    digest: str
    yaml: str
    objectives: Objectives
    trials: tuple[Trial, ...] = ()

    @property
    def space(self) -> Space:
        """Its search space, which may differ from that of the history."""
        return load_space(read_yaml(self.yaml))
