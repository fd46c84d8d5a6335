"""Loop of a tracker: a sweep is read, and a destination is made equal to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nasbo.errors import JournalError, NasboError, SweepError
from nasbo.tracking.destination import Destination, Tracked, TrackingError
from nasbo.tracking.files import digest, kept_files
from nasbo.tracking.watch import Watch

MAX_WAIT_S = 30.0
MAX_REFUSALS = 3
"""So many refusals one after the other end a tracker; each time all was looked up anew."""


@dataclass(frozen=True)
class Plan:
    """How long a tracker goes on.

    Attributes:
        follow: until the sweep is over; else what is there now is sent.
        interval_s: between two looks.
        patience_s: how long it waits for a sweep that no driver runs; ``None`` for ever.
    """

    follow: bool = False
    interval_s: float = 2.0
    patience_s: float | None = None


def track(folder: Path, destination: Destination, plan: Plan, tell: Callable[[str], Any]) -> None:
    """Show a sweep in a destination.

    Raises:
        NasboError: there is no sweep, or the destination cannot be used; while a sweep is followed,
            one that cannot be reached is waited for.
    """
    _Tracker(Watch(folder), destination, plan, tell).run()


class _Tracker:
    def __init__(
        self, watch: Watch, destination: Destination, plan: Plan, tell: Callable[[str], Any]
    ) -> None:
        self._watch, self._destination, self._plan, self._tell = watch, destination, plan, tell
        self._n_failures = self._n_refusals = 0
        self._is_told = False
        self._alive_at = time.monotonic()

    def run(self) -> None:
        try:
            while not self._turn():
                time.sleep(self._pause())
        finally:
            self._destination.close()

    def _turn(self) -> bool:
        """Look and send once; whether that was the last time."""
        try:
            tracked = self._watch.look()
            if tracked is not None:
                self._send(tracked)
        except (TrackingError, SweepError, JournalError, OSError) as error:
            self._wait_or_raise(error)
            return False
        if tracked is None and not self._plan.follow:
            raise NasboError(f"{self._watch.name}: nothing has begun yet; --follow waits for it")
        return not self._plan.follow or self._is_over(tracked)

    def _send(self, tracked: Tracked) -> None:
        self._destination.send(tracked)
        self._tell_reached()
        if not self._is_told:
            self._is_told = True
            self._tell(f"{tracked.sweep.name}: shown in {self._destination.where()}")
        if tracked.is_over or not self._plan.follow:
            # What arrived late, or came from a second tracker, is seen by looking again.
            self._destination.forget()
            self._destination.send(tracked)
            self._send_files(tracked)
            self._tell(_words(tracked))

    def _send_files(self, tracked: Tracked) -> None:
        with kept_files(tracked.sweep) as files:
            digests = {name: digest(path) for name, path in files.items()}
            known = self._destination.files()
            new = {name: path for name, path in files.items() if known.get(name) != digests[name]}
            if new:
                self._destination.send_files(new, {**known, **digests})
                self._tell(f"files: {', '.join(new)}")

    def _is_over(self, tracked: Tracked | None) -> bool:
        if tracked is not None and tracked.is_over:
            return True
        if tracked is not None and tracked.is_driven:
            self._alive_at = time.monotonic()
        patience_s, waited_s = self._plan.patience_s, time.monotonic() - self._alive_at
        if patience_s is None or waited_s < patience_s:
            return False
        self._tell(f"{self._watch.name}: no driver has run it for {waited_s:.0f} s; ended here")
        return True

    def _wait_or_raise(self, error: Exception) -> None:
        """Say once that something cannot be reached; what would never pass is raised."""
        is_refusal = not getattr(error, "is_passing", True) or isinstance(error, JournalError)
        self._n_refusals = self._n_refusals + 1 if is_refusal else 0
        is_final = self._n_refusals >= MAX_REFUSALS or (not self._plan.follow and not is_refusal)
        if is_final:
            raise error if isinstance(error, NasboError) else TrackingError(str(error)) from error
        if self._n_failures == 0:
            self._tell(f"{error}; trying again, the sweep does not notice")
        has_progressed = getattr(error, "n_sent", 0) > 0
        self._n_failures = 1 if has_progressed else self._n_failures + 1

    def _tell_reached(self) -> None:
        if self._n_failures:
            self._tell("reached again, and caught up")
        self._n_failures = self._n_refusals = 0

    def _pause(self) -> float:
        if not self._n_failures:
            return self._plan.interval_s
        return min(MAX_WAIT_S, self._plan.interval_s * 2.0 ** min(self._n_failures - 1, 10))


def _words(tracked: Tracked) -> str:
    n_trials = sum(run.kind == "trial" for run in tracked.runs)
    n_repeats = sum(run.kind == "repeat" for run in tracked.runs)
    n_points = sum(len(run.points) for run in tracked.runs if run.kind in ("trial", "repeat"))
    repeats = f", {n_repeats} repeats" if n_repeats else ""
    state = tracked.runs[0].state
    return f"{tracked.sweep.name}: {state}; {n_trials} trials{repeats}, {n_points} reports"
