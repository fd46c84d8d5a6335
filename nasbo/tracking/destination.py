"""Destinations of a sweep: what each of them must do, and which there are."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from nasbo.errors import NasboError
from nasbo.sweeps.folder import SweepFolder
from nasbo.tracking.records import TrackedRun

EXTRAS = {"mlflow": "mlflow", "wandb": "wandb"}
"""Packages that a destination needs, by the names of their extras."""
DESTINATIONS: Mapping[str, str] = {
    "mlflow": "nasbo.tracking.mlflow_runs:MlflowRuns",
    "wandb": "nasbo.tracking.wandb_runs:WandbRuns",
    "tensorboard": "nasbo.tracking.tensorboard_files:TensorboardFiles",
}


class TrackingError(NasboError):
    """A tracker that cannot be reached or refuses; what it was told last counts as unknown.

    Attributes:
        is_passing: whether it may be well later, with nothing done here.
        n_sent: how many requests were carried out before.
    """

    exit_code = 3

    def __init__(self, words: str, is_passing: bool = True, n_sent: int = 0) -> None:
        super().__init__(words)
        self.is_passing, self.n_sent = is_passing, n_sent


@dataclass(frozen=True)
class Wish:
    """Where a sweep is to be shown.

    Attributes:
        tracking_uri: of a server, or a folder for TensorBoard; ``None`` for what the package's own
            environment variables say.
        project: experiment or project.
        name: of the sweep's run; ``None`` for the name of its folder.
        tell: called with words for the user.
    """

    tracking_uri: str | None = None
    project: str = "nasbo"
    name: str | None = None
    tell: Callable[[str], Any] = lambda words: None


@dataclass(frozen=True)
class Tracked:
    """A sweep at one moment.

    Attributes:
        identity: of the sweep.
        runs: all that have begun, parents before their children; runs that have not changed are
            the same objects as before.
        sweep: read as far as it has come.
        is_over: whether nothing more is to come as things stand.
        is_driven: whether a driver is at work.
    """

    identity: str
    runs: Sequence[TrackedRun]
    sweep: SweepFolder
    is_over: bool = False
    is_driven: bool = False


class Destination(Protocol):
    """Shows a sweep somewhere else.

    What it was told by an earlier process, or before an error, it finds out by itself: it is told
    the whole sweep each time, and makes what is there equal to it.
    """

    def send(self, tracked: Tracked) -> None:
        """Bring what is there up to date; ``TrackingError`` where that cannot be done now."""

    def forget(self) -> None:
        """Find out anew what is there, the next time."""

    def files(self) -> Mapping[str, str]:
        """Digests of the files that were sent, by name."""

    def send_files(self, files: Mapping[str, Path], digests: Mapping[str, str]) -> None:
        """Store files with the sweep's run, in place of older ones of the same names."""

    def where(self) -> str:
        """Where a person looks at it."""

    def close(self) -> None:
        """End what was begun; an interrupt in it loses nothing."""


def open_destination(name: str, wish: Wish) -> Destination:
    """One of ``DESTINATIONS``.

    Raises:
        NasboError: there is none of this name, or its package is missing.
    """
    if name not in DESTINATIONS:
        raise NasboError(f"unknown tracker {name!r}; known: {', '.join(DESTINATIONS)}")
    module, _, attribute = DESTINATIONS[name].partition(":")
    try:
        made: Destination = getattr(importlib.import_module(module), attribute)(wish)
    except ModuleNotFoundError as error:
        if name not in EXTRAS or (error.name or "").partition(".")[0] != EXTRAS[name]:
            raise
        raise NasboError(
            f"--to {name} needs the package {EXTRAS[name]}: pip install 'nasbo[{EXTRAS[name]}]'"
        ) from error
    return made
