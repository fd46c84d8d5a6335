"""A sweep's folder as an object: settings, space, history and trial folders, read only."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nasbo.errors import NasboError
from nasbo.history import History, Trial
from nasbo.space import Space
from nasbo.storage.mirror import is_running, open_named, pull, shown
from nasbo.sweep import Sweep, open_folder, read_history, state_of, trial_folder
from nasbo.sweeps.rows import Row, flat, measurement_rows, trial_rows
from nasbo.trainer import Trainer, check_outside, load_trainer

if TYPE_CHECKING:
    import pandas

N_SHOWN = 10


class SweepFolder:
    """A sweep that ran, runs or was interrupted; nothing of it is locked or changed.

    Args:
        folder: the sweep's folder, or a URL such as ``s3://bucket/runs/first``.

    Raises:
        SweepError: there is no sweep.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path: Path = open_named(os.fspath(folder))
        self.settings, self.space = open_folder(self.path)
        self.history: History = read_history(self.path)[1]

    settings: Sweep
    space: Space

    def refresh(self) -> SweepFolder:
        """Read what has happened since."""
        pull(self.path)
        self.history = read_history(self.path)[1]
        return self

    @property
    def name(self) -> str:
        """The path or URL as its user knows it."""
        return shown(self.path)

    @property
    def trials(self) -> list[Trial]:
        """All trials, copies."""
        return [trial.copy() for trial in self.history.trials]

    @property
    def best(self) -> Trial:
        """The trial with the best value.

        Raises:
            NasboError: nothing has finished yet.
        """
        if self.history.best is None:
            raise NasboError(f"{self.name}: nothing has finished yet")
        return self.history.best.copy()

    @property
    def budget(self) -> int:
        """How many trials there are to be."""
        return self.history.budget or self.settings.trials

    @property
    def metric(self) -> str:
        return self.settings.metric or "value"

    @property
    def is_running(self) -> bool:
        """Whether a living process writes the journal, here or elsewhere."""
        return is_running(self.path)

    @property
    def state(self) -> str:
        """``finished``, ``running`` or ``interrupted``."""
        return state_of(self.history, self.budget, self.is_running)

    @cached_property
    def trainer(self) -> Trainer:
        """The trainer, from installed packages or the working directory, never from the folder."""
        check_outside(self.settings.trainer, self.path)
        return load_trainer(self.settings.trainer)

    def trial_folder(self, trial: Trial | int) -> Path:
        """Where a trial keeps its checkpoints and logs."""
        return trial_folder(self.path, trial.id if isinstance(trial, Trial) else trial)

    def to_dataframe(self) -> pandas.DataFrame:
        """A row per trial; ``nasbo.sweeps.rows`` says what the columns are."""
        return _dataframe(trial_rows(self.history), self.space.names)

    def measurements_dataframe(self) -> pandas.DataFrame:
        """A row per report of each trial."""
        return _dataframe(measurement_rows(self.history), ())

    def __repr__(self) -> str:
        best = self.history.best
        told = "no result" if best is None else f"best {self.metric} {best.value:.6g}"
        return (
            f"SweepFolder({self.name}: {self.settings.method}, {self.state}, "
            f"{self.history.n_ended} of {self.budget} trials, {told})"
        )

    def _repr_html_(self) -> str:
        """A table of the best trials, for notebooks."""
        names = list(self.space.names)
        head = ["trial", self.metric, *names]
        body = [
            [trial.id, f"{trial.value:.6g}", *(trial.config.get(name, "") for name in names)]
            for trial in self.history.ranked()[:N_SHOWN]
        ]
        return f"<p>{html.escape(repr(self))}</p>{_html_table(head, body)}"


def load_sweep(folder: str | os.PathLike[str]) -> SweepFolder:
    """A sweep's folder, to look at in Python: no Ray is needed, and nothing is locked.

    Args:
        folder: a path, or a URL such as ``s3://bucket/runs/first``.
    """
    return SweepFolder(folder)


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
