"""Policies of a sweep: screening before training, checkpoints to keep, and giving up."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from nasbo.history import Ending, Run, Trial, View
from nasbo.history.events import Retired
from nasbo.limits import Limits
from nasbo.search import Search
from nasbo.search.retries import is_same_message
from nasbo.storage.mirror import location_of
from nasbo.storage.trial_files import delete_files
from nasbo.sweeps.folder import trial_folder, trial_name
from nasbo.sweeps.settings import Sweep
from nasbo.trainer import DATA, Trainer, cause_of

logger = logging.getLogger(__name__)
CHECKPOINTS = "checkpoint*"
"""Files of a trial that are removed when they are no longer needed."""
MIN_ALIKE = 5
"""Number of equal crashes below which no trainer is blamed, however small the design is."""


class Screening:
    """Ends runs of invalid configs and of known networks before they use a worker.

    Args:
        search: of the sweep.
        sweep: its settings.
        trainer: may refuse configs, and may have a fingerprint of the network of a config.
        limits: constraints of the sweep.
    """

    def __init__(
        self, search: Search, sweep: Sweep, trainer: Trainer, limits: Limits | None
    ) -> None:
        self._search, self._trainer, self._limits = search, trainer, limits
        self._options = sweep.trainer_options
        self._fingerprints: dict[str, int] = {}
        for trial in search.history.suggested if trainer.fingerprint is not None else ():
            if trial.state == "finished" and (key := self._fingerprint(trial)) is not None:
                self._fingerprints.setdefault(key, trial.id)

    def refuse(self, run: Run) -> bool:
        """End a run whose config breaks a constraint or is refused by the trainer's check."""
        config = self._search.history.trial(run.number).config
        broken = self._limits.violation(config) if self._limits else None
        if broken is not None:
            self._search.tell(run, error="invalid", message=f"constraint: {broken}")
            return True
        try:
            self._trainer.check_config(config, self._options)
        except Exception as error:  # a user's function may raise anything
            cause = cause_of(error)
            if cause == DATA:  # workers may have data that the driver lacks
                return False
            cause = "invalid" if cause == "crashed" else cause
            self._search.tell(run, error=cause, message=f"{type(error).__name__}: {error}")
            return True
        return False

    def answer(self, run: Run) -> bool:
        """End a run with the result of an earlier trial of the same network."""
        trial = self._search.history.trial(run.number)
        key = None if run.is_repeat else self._fingerprint(trial)
        if key is None:
            return False
        twin = self._search.history.trial(self._fingerprints.setdefault(key, trial.id))
        if twin.state == "failed":
            self._fingerprints[key] = trial.id
        if twin.id == trial.id or twin.state != "finished":
            return False
        self._search.answer(trial, twin)
        return True

    def _fingerprint(self, trial: Trial) -> str | None:
        """The trainer's fingerprint of the network; without one the config is trained."""
        if self._trainer.fingerprint is None:
            return None
        try:
            return self._trainer.fingerprint(trial.config)
        except Exception as error:  # a user's function may raise anything
            logger.info("no fingerprint known of trial %s: %s", trial.id, error)
            return None


class Checkpoints:
    """Keeps the files ``checkpoint*`` of open and paused runs, and of the best ended ones."""

    def __init__(self, folder: Path, history: View, n_kept: int) -> None:
        self._folder, self._history, self._n_kept = folder, history, n_kept
        ended = (trial.first for trial in history.suggested if not trial.is_open)
        self._numbers = {run.number for run in ended if not run.is_paused}

    def __call__(self, run: Run) -> None:
        """Remove what is no longer needed after a run has ended."""
        if run.is_paused:
            return
        self._numbers.add(run.number)
        ended = [self._history.run(number) for number in self._numbers]
        try:
            kept = prune_checkpoints(self._folder, ended, self._history, self._n_kept)
        except OSError as error:  # the next run that ends tries again
            logger.warning("old checkpoints cannot be removed: %s", error)
        else:
            self._numbers = {one.number for one in kept}


def prune_checkpoints(folder: Path, ended: list[Run], history: View, n_kept: int) -> list[Run]:
    """Remove the files ``checkpoint*`` of ended runs except the best; returns the best."""
    valued = [run for run in ended if run.value is not None]
    valued.sort(key=lambda run: _place(run, history))
    kept = valued[:n_kept]
    for run in ended:
        if run not in kept:
            remove_checkpoints(folder, run)
    return kept


def remove_checkpoints(folder: Path, run: Run) -> None:
    """Remove the files ``checkpoint*`` of a run, also in the sweep's bucket."""
    for file in trial_folder(folder, run.number).glob(CHECKPOINTS):
        remove_file(file)
    if (location := location_of(folder)) is not None:
        delete_files(location, trial_name(run.number), CHECKPOINTS)


def _place(run: Run, history: View) -> tuple[bool, float, int]:
    """Sort key of a run's checkpoint: the value of a repeat, or the mean of
    its trial for a first run.

    Under noise, first runs of candidates for the best come first, ordered by their estimates.
    """
    trial = history.trial(run.number)
    is_behind = run.is_repeat or trial.estimate is None
    value = run.value if run.is_repeat or trial.value is None else trial.expected
    return is_behind, -history.score(0.0 if value is None else value), run.number


def remove_file(path: Path) -> None:
    """Remove a file, or a folder with all its files."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


class PausedCheckpoints:
    """Keeps the checkpoints of a limited number of paused runs, those most likely to continue.

    Args:
        folder: of the sweep.
        search: its journal records the runs that have lost their checkpoint.
        n_kept: number of paused runs that keep theirs.
    """

    def __init__(self, folder: Path, search: Search, n_kept: int) -> None:
        self._folder, self._search, self._n_kept = folder, search, n_kept
        # A killed driver may have recorded a removal without doing it.
        self._to_remove = set(search.history.retired)

    def __call__(self, run: Run) -> None:
        """Record, then remove, surplus checkpoints after a run has paused."""
        history = self._search.history
        if not run.is_paused or history.rungs is None:
            return
        paused = [trial.first for trial in history.suggested if trial.first.is_paused]
        held = [one for one in paused if one.number not in history.retired]
        held.sort(key=lambda one: (-(one.until or 0), -history.score(one.value or 0.0), one.number))
        for one in held[self._n_kept :]:
            self._search.record(Retired(run=one.number))
            self._to_remove.add(one.number)
        self._to_remove &= history.retired  # restarted runs have new checkpoints
        for one in paused:
            if one.number in self._to_remove:
                self._remove(one)

    def _remove(self, run: Run) -> None:
        try:
            remove_checkpoints(self._folder, run)
        except OSError as error:  # the next run that pauses tries again
            logger.warning("a checkpoint cannot be removed: %s", error)
        else:
            self._to_remove.discard(run.number)


class FailuresInARow:
    """Counts consecutive failures, and stores the last one.

    Args:
        most: number of consecutive failures that ends a sweep.
        n_design: size of the design. A sweep also ends if all of it has crashed with one message:
            then the trainer is to blame, no config.
    """

    def __init__(self, most: int, n_design: int = 0) -> None:
        self._most, self._n_alike = most, max(n_design, MIN_ALIKE)
        self.count, self._last, self._message = 0, "", ""
        self._is_alike = True

    def __call__(self, run: Run) -> None:
        """Count a run that has ended."""
        if run.ending is None or not run.ending.is_failure:
            self.count, self._is_alike = 0, False
            return
        is_first = self._is_alike and self.count == 0
        is_same = is_first or is_same_message(run.message, self._message)
        self._is_alike = self._is_alike and run.ending is Ending.CRASHED and is_same
        self.count += 1
        self._last, self._message = f"{run.ending} {run.message}".strip(), run.message

    @property
    def problem(self) -> str:
        """Why the sweep is to end; "" while it may continue."""
        if self._is_alike and self.count >= self._n_alike:
            return f"all {self.count} trials crashed in the same way: {self._message}"
        if self.count < self._most:
            return ""
        return f"{self.count} trials failed one after the other; the last one: {self._last}"
