"""Folder of a sweep, on disk or in a bucket: creation, and an object to read it."""

from __future__ import annotations

import html
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nasbo.errors import NasboError, SpaceError, SweepError
from nasbo.history import By, History, Trial, replay
from nasbo.history.journal import read_events, write_durably
from nasbo.methods import Method, make_method
from nasbo.search.repeats import is_complete
from nasbo.space import Space, find_space_file, load_space
from nasbo.space.plain_yaml import UNREADABLE, read_yaml, write_yaml
from nasbo.storage import JOURNAL_FILE, Location, open_named
from nasbo.storage.mirror import is_running, location_of, pull, push, shown
from nasbo.sweeps.rows import Row, flat, measurement_rows, trial_rows
from nasbo.sweeps.rungs import at_step
from nasbo.sweeps.settings import Sweep, make_sweep
from nasbo.sweeps.spending import budget_text
from nasbo.sweeps.valueless import valueless_text
from nasbo.trainer import Trainer, check_outside, load_trainer

if TYPE_CHECKING:
    import pandas

SETTINGS_FILE = "sweep.yaml"
SPACE_FILE = "space.yaml"
ERROR_FILE = "error.txt"
"""File in a trial's folder with the traceback of its last crash."""
N_SHOWN = 10


class SweepFolder:
    """A sweep that has run, runs or was interrupted. It is neither locked nor changed.

    Args:
        folder: the sweep's folder, or a URL such as ``s3://bucket/runs/first``.

    Attributes:
        path: of the folder; for a URL that of a mirror on this machine.
        settings: settings at the start of the sweep; ``budget`` is the present number of trials.
        space: the sweep's own copy of its space.

    Raises:
        SweepError: there is no sweep in the folder.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path: Path = open_named(os.fspath(folder))
        self.settings: Sweep = _read_settings(self.path)
        self.space: Space = _read_space(self.path)

    @cached_property
    def history(self) -> History:
        """The history from the journal; read on first use, and again after ``refresh``."""
        return replay(self.space, self.settings.mode, read_events(self.journal_file))

    def refresh(self) -> SweepFolder:
        """Read the present state of the sweep."""
        pull(self.path)
        return self.forget()

    def forget(self) -> SweepFolder:
        """Read the journal again on next use."""
        self.__dict__.pop("history", None)
        return self

    @property
    def journal_file(self) -> Path:
        return self.path / JOURNAL_FILE

    @property
    def location(self) -> Location | None:
        """The bucket of the sweep, if it is in one."""
        return location_of(self.path)

    @property
    def name(self) -> str:
        """The path or URL as given by the user."""
        return shown(self.path)

    @property
    def trials(self) -> list[Trial]:
        """Copies of all trials."""
        return [trial.copy() for trial in self.history.trials]

    def ranked(self, by: By = "estimate") -> list[Trial]:
        """Copies of the trials with a value, best first.

        Args:
            by: ``estimate`` of the noise-free value, if the method has found noise, or the
                ``observed`` value.
        """
        return [trial.copy() for trial in self.history.ranked(by)]

    @property
    def best(self) -> Trial:
        """The trial with the best value; under noise, the one expected to be best.

        As long as no trial was trained in full, it is the best of those at the highest step: its
        ``value`` is ``None`` then, and ``partial`` has its last value.

        Raises:
            NasboError: no trial has a value; the message counts the failures.
        """
        if self.history.best is None:
            raise NasboError(f"{self.name}: {valueless_text(self.history)}")
        return self.history.best.copy()

    @property
    def front(self) -> list[Trial]:
        """Copies of the trials that no other one dominates, by the first objective."""
        return [trial.copy() for trial in self.history.front]

    @property
    def budget(self) -> int:
        """Total number of trials."""
        return self.history.budget or self.settings.trials

    @property
    def metric(self) -> str:
        return self.settings.metric or "value"

    @property
    def is_running(self) -> bool:
        """Whether a living process writes the journal, on any machine."""
        return is_running(self.path)

    @property
    def state(self) -> str:
        """``finished``, ``running`` or ``interrupted``."""
        if is_complete(self.history, self.budget):
            return "finished"
        return "running" if self.is_running else "interrupted"

    @cached_property
    def trainer(self) -> Trainer:
        """The trainer, from installed packages or the working directory, never from the folder."""
        check_outside(self.settings.trainer, self.path)
        return load_trainer(self.settings.trainer)

    @cached_property
    def method(self) -> Method:
        """The search method, from installed packages or the working directory as the trainer is."""
        settings = self.settings
        if ":" in settings.method:
            check_outside(settings.method, self.path)
            if (root := os.getcwd()) not in sys.path:
                sys.path.insert(0, root)
        return make_method(settings.method, self.space, settings.seed, **settings.method_options)

    def trial_folder(self, trial: Trial | int) -> Path:
        """Folder of a trial's checkpoints and logs."""
        return trial_folder(self.path, trial.id if isinstance(trial, Trial) else trial)

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per trial; the columns are listed in ``nasbo.sweeps.rows``."""
        return _dataframe(trial_rows(self.history), self.space.names)

    def measurements_dataframe(self) -> pandas.DataFrame:
        """One row per report of each trial."""
        return _dataframe(measurement_rows(self.history), ())

    def __repr__(self) -> str:
        best = self.history.best
        told = "no result" if best is None else f"best {self.metric} {self._value_text(best)}"
        if best is not None and best.estimate is not None:
            told += f", {best.estimate.mean:.6g} expected"
        return (
            f"SweepFolder({self.name}: {self.settings.method}, {self.state}, "
            f"{budget_text(self.history, self.budget)}, {told})"
        )

    def _value_text(self, trial: Trial) -> str:
        """Last value of a ranked trial, with its step if it was trained in part."""
        return f"{trial.last_value:.6g}{at_step(self.history, trial)}"

    def _repr_html_(self) -> str:
        """A table of the best trials, for notebooks."""
        names = list(self.space.names)
        head = ["trial", self.metric, *names]
        body = [
            [trial.id, self._value_text(trial), *(trial.config.get(name, "") for name in names)]
            for trial in self.history.ranked()[:N_SHOWN]
        ]
        return f"<p>{html.escape(repr(self))}</p>{_html_table(head, body)}"


def load_sweep(folder: str | os.PathLike[str]) -> SweepFolder:
    """Open a sweep's folder for reading in Python, without Ray and without a lock.

    Args:
        folder: a path, or a URL such as ``s3://bucket/runs/first``.
    """
    return SweepFolder(folder)


def create_folder(folder: Path, sweep: Sweep) -> Sweep:
    """Create a sweep's folder, with its settings and a copy of its space."""
    if (folder / SETTINGS_FILE).exists():
        name = shown(folder)
        told = f"{name} holds a sweep already: continue it by nasbo resume {name}"
        raise SweepError(f"{told}, or name another --dir")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        write_durably(folder / SPACE_FILE, find_space_file(sweep.space).read_bytes())
        write_durably(folder / SETTINGS_FILE, write_yaml(asdict(sweep)).encode())
    except OSError as error:
        raise SweepError(f"{folder}: cannot be written: {error}") from error
    push(folder, (SPACE_FILE, SETTINGS_FILE))
    return sweep


def trial_name(number: int) -> str:
    """Path of a trial's folder inside the sweep's."""
    return f"trials/{number:05d}"


def trial_folder(folder: str | os.PathLike[str], number: int) -> Path:
    """Folder of a trial's checkpoints and logs."""
    return Path(folder) / trial_name(number)


def _read_settings(folder: Path) -> Sweep:
    file = folder / SETTINGS_FILE
    try:
        content = read_yaml(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        told = f"{shown(folder)!r} holds no sweep ({SETTINGS_FILE} is missing)"
        raise SweepError(told) from error
    except UNREADABLE as error:
        raise SweepError(f"{file}: cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise SweepError(f"{file}: must be a mapping of settings")
    return make_sweep(content)


def _read_space(folder: Path) -> Space:
    try:
        return load_space(folder / SPACE_FILE)
    except SpaceError as error:
        raise SweepError(f"the sweep's copy of its space is broken: {error}") from error


def _dataframe(rows: Sequence[Row], parameters: Sequence[str]) -> pandas.DataFrame:
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise NasboError("data frames need the package pandas: pip install pandas") from error
    columns, found = flat(rows, parameters)
    return pandas.DataFrame(found, columns=columns)


def _html_table(head: Sequence[Any], body: Sequence[Sequence[Any]]) -> str:
    def row(cells: Sequence[Any], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(c))}</{tag}>" for c in cells) + "</tr>"

    lines = [row(head, "th"), *(row(cells, "td") for cells in body)]
    return f"<table>{''.join(lines)}</table>"
