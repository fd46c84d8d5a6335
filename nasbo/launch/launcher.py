"""Launcher protocol, and the choice of a launcher by name or address."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from nasbo.errors import SweepError
from nasbo.launch.order import Order
from nasbo.launch.records import Record

Tell = Callable[[str], object]
RUNNING = ("waiting", "running")
STOP_S = 120.0


class Launcher(Protocol):
    """Starts, finds and stops sweeps in one environment."""

    def plan(self, order: Order) -> str:
        """What ``submit`` would do, as text; raises the same errors as ``submit``."""

    def submit(self, order: Order, tell: Tell) -> Record:
        """Start a sweep, and return when it is submitted."""

    def state(self, record: Record) -> str:
        """``waiting``, ``running``, or how it ended."""

    def stop(self, record: Record) -> None:
        """Request a clean stop, without waiting for it."""

    def logs(self, record: Record, follow: bool, write: Tell) -> None:
        """Pass the driver's output to ``write``; with ``follow`` until it has ended."""

    def find(self, folder: str) -> Record | None:
        """A running sweep in this folder, though no record on this machine names it."""


def wait_for_end(launcher: Launcher, record: Record, timeout_s: float = STOP_S) -> str:
    """The state after a stop; ``SweepError`` if the sweep does not end."""
    deadline = time.monotonic() + timeout_s
    while (state := launcher.state(record)) in RUNNING:
        if time.monotonic() > deadline:
            raise SweepError(f"{record.id} on {record.on} has not ended after {timeout_s:.0f} s")
        time.sleep(0.5)
    return state


def follow_file(file: Path, is_over: Callable[[], bool], follow: bool, write: Tell) -> None:
    """Pass a file's content to ``write`` and, with ``follow``, what is
    appended until it is over.
    """
    position = 0
    while True:
        ends_now = not follow or is_over()
        if file.exists():
            with file.open("rb") as stream:
                stream.seek(position)
                data = stream.read()
            position += len(data)
            if data:
                write(data.decode(errors="replace"))
        if ends_now:
            return
        time.sleep(0.5)


def choose(on: str) -> Launcher:
    """The launcher for a name or an address.

    Raises:
        SweepError: it is neither.
    """
    from nasbo.launch.kuberay import KubeRayLauncher
    from nasbo.launch.local import LocalLauncher
    from nasbo.launch.ray_jobs import RayJobLauncher
    from nasbo.launch.slurm import SlurmLauncher

    named: dict[str, Callable[[], Launcher]] = {
        "local": LocalLauncher,
        "slurm": SlurmLauncher,
        "kuberay": KubeRayLauncher,
    }
    if on in named:
        return named[on]()
    if on == "auto" or ":" in on:
        return RayJobLauncher(on)
    raise SweepError(
        f"--on must be {', '.join(named)} or the address of a Ray cluster, such as "
        f"http://127.0.0.1:8265, got {on!r}"
    )
