"""Reader of a sweep and its finalists for trackers, without a lock."""

from __future__ import annotations

import time
from pathlib import Path

from nasbo.errors import JournalError
from nasbo.finish.finalists import final_folder
from nasbo.history import Trial
from nasbo.report.watch import SweepFollower
from nasbo.search.repeats import is_complete
from nasbo.sweeps.folder import SETTINGS_FILE
from nasbo.sweeps.job import sweep_name
from nasbo.tracking.destination import Tracked
from nasbo.tracking.records import TrackedRun, identity, sweep_run, trial_runs

PROBE_S = 5.0
"""Whether a driver lives is asked no more often. It must be above the 0.2 s after which a driver
that starts asks for its lock once more."""
FINAL = "final/"


class _Part:
    """A sweep, or that of its finalists, as far as it was read."""

    def __init__(self, folder: Path, name: str, prefix: str = "") -> None:
        self._folder, self._name, self._prefix = folder, name, prefix
        self.sweep = SweepFollower(folder)
        self._trials: dict[int, tuple[Trial, bool, list[TrackedRun]]] = {}
        self._own: TrackedRun | None = None
        self._probed = (float("-inf"), False)

    def read(self) -> None:
        """Take in what is new; a journal that was mended meanwhile is read from its beginning."""
        try:
            self.sweep.refresh()
        except JournalError:
            self.sweep = SweepFollower(self._folder)
            self.sweep.refresh()

    @property
    def is_driven(self) -> bool:
        asked_at, answer = self._probed
        if time.monotonic() - asked_at >= PROBE_S:
            answer = self.sweep.is_running
            self._probed = (time.monotonic(), answer)
        return answer

    @property
    def state(self) -> str:
        """As ``SweepFolder.state``, and ``stopped`` where its value was reached."""
        history = self.sweep.history
        if is_complete(history, self.sweep.budget):
            return "finished"
        if self.is_driven:
            return "running"
        target, best = self.sweep.settings.stop_at, history.best
        if target is not None and best is not None and best.expected is not None:
            is_reached = history.score(best.expected) >= history.score(target)
            return "stopped" if is_reached else "interrupted"
        return "interrupted"

    def runs(self) -> list[TrackedRun]:
        """All runs, parents first; the same objects as before where nothing has changed."""
        made = sweep_run(self.sweep, self._name, self.state, self._prefix)
        self._own = self._own if made == self._own else made
        assert self._own is not None
        found, history, is_driven = [self._own], self.sweep.history, self.is_driven
        for trial in history.suggested:
            known = self._trials.get(trial.id)
            if known is None or known[0] is not trial or known[1] != is_driven:
                args = (self.sweep.metric, self._prefix, is_driven)
                known = (trial, is_driven, list(trial_runs(history, trial, *args)))
                self._trials[trial.id] = known
            found += known[2]
        return found


class Watch:
    """Reads a sweep whenever it is asked to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._search = _Part(folder, sweep_name(folder))
        self._final: _Part | None = None
        self._asked_at = float("-inf")

    @property
    def name(self) -> str:
        return self._search.sweep.name

    def look(self) -> Tracked | None:
        """The sweep as it is now; ``None`` before its journal begins."""
        self._search.read()
        history = self._search.sweep.history
        if history.settings is None:
            return None
        runs, parts = self._search.runs(), [self._search]
        self._find_final()
        if self._final is not None:
            self._final.read()
            if self._final.sweep.history.settings is not None:
                runs, parts = [*runs, *self._final.runs()], [*parts, self._final]
        states = [part.state for part in parts]
        is_over = all(state in ("finished", "stopped") for state in states)
        is_driven = any(part.is_driven for part in parts)
        return Tracked(identity(history), runs, self._search.sweep, is_over, is_driven)

    def _find_final(self) -> None:
        if self._final is not None or time.monotonic() - self._asked_at < PROBE_S:
            return
        self._asked_at = time.monotonic()
        sweep = self._search.sweep
        if sweep.location is not None and sweep.location.read(f"{FINAL}{SETTINGS_FILE}") is None:
            return
        folder = final_folder(sweep)
        if (folder / SETTINGS_FILE).exists():
            self._final = _Part(folder, f"finalists of {sweep_name(self._folder)}", FINAL)
