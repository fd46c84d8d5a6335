"""Callbacks for sweeps on a real Ray: one that writes down what it is told, one that fails."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nasbo


class Notes(nasbo.Callback):
    """Appends a line for each call to the file that ``$NOTES`` names."""

    def __init__(self) -> None:
        self.file = Path(os.environ["NOTES"])

    def _note(self, *words: Any) -> None:
        with self.file.open("a") as file:
            file.write(" ".join(map(str, words)) + "\n")

    def on_start(self, history: Any) -> None:
        self._note("start", history.n_ended, "pid", os.getpid())

    def on_round(self, opened: Any, trials: Any) -> None:
        self._note("round", opened.number, *(trial.id for trial in trials))

    def on_report(self, trial: Any, run: Any, measurement: Any) -> None:
        self._note("report", run.number, measurement.step)

    def on_end(self, trial: Any, run: Any) -> None:
        self._note("end", run.number, run.state)

    def on_stop(self, history: Any) -> None:
        self._note("stop", history.n_ended)


class Failing(nasbo.Callback):
    """Fails at each end of a trial."""

    def on_end(self, trial: Any, run: Any) -> None:
        raise RuntimeError("no network")
