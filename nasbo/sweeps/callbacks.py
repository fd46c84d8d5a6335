"""Callbacks of a sweep: a user's objects that its driver calls with what has happened."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from nasbo.blame import describe_import
from nasbo.errors import SweepError
from nasbo.history import Ending, Measurement, Round, Run, Trial, View
from nasbo.sweeps.settings import Sweep
from nasbo.trainer import check_outside

logger = logging.getLogger(__name__)


class Callback:
    """What a sweep calls; subclass it, and write the methods that matter.

    A sweep names callbacks as ``callbacks: [module:Class]`` or by ``--callback module:Class``. Each
    is constructed without arguments in the driver's process, and called from a thread of its own,
    a moment after things have happened and in their order, by one driver once for each. What an
    earlier driver did is not told again: ``on_start`` has its history.

    What it raises is logged and counted; the sweep goes on.
    """

    def on_start(self, history: View) -> None:
        """The driver has begun; the history has what was before, for a sweep that is resumed."""

    def on_round(self, opened: Round, trials: Sequence[Trial]) -> None:
        """Trials were decided together."""

    def on_report(self, trial: Trial, run: Run, measurement: Measurement) -> None:
        """A run has reported; ``run.is_repeat`` says whether it is the trial's first one."""

    def on_end(self, trial: Trial, run: Run) -> None:
        """A run has ended or paused: ``run.state``, ``run.cause`` and ``run.value`` say how."""

    def on_stop(self, history: View) -> None:
        """The driver ends, for whatever reason."""


class _Happening(NamedTuple):
    """A call that is due, by its time; ``order`` parts those of one millisecond."""

    time: float
    order: int
    number: int
    name: str
    arguments: tuple[Any, ...]


class Callbacks:
    """Calls callbacks with what is new in a history; an observer of a run.

    Args:
        callbacks: by the names that users gave them.

    Attributes:
        errors: how often each of them failed.
    """

    def __init__(self, callbacks: Sequence[tuple[str, Callback]]) -> None:
        self._callbacks = callbacks
        self.errors: Counter[str] = Counter()
        self._n_rounds = 0
        self._n_reports: dict[int, int] = {}
        self._ends: dict[int, tuple[int, float | None]] = {}
        self._seen: dict[int, Trial] = {}

    def mark(self, history: View) -> None:
        """What is in the history now needs not be told."""
        for _ in self._news(history):
            pass

    def start(self, history: View) -> None:
        """Tell that a driver has begun."""
        self._call("on_start", history)

    def __call__(self, history: View, note: str = "") -> None:
        """Tell what has happened since the last time."""
        for one in sorted(self._news(history), key=lambda one: one[:3]):
            self._call(one.name, *one.arguments)

    def stop(self, history: View) -> None:
        """Tell what is left, and that nothing follows."""
        self(history)
        self._call("on_stop", history)

    def words(self) -> str:
        """Who failed, and how often; empty if nobody did."""
        told = [f"{name} failed {n} times" for name, n in self.errors.items()]
        return f"callbacks: {', '.join(told)}; the log says why" if told else ""

    def _call(self, name: str, *arguments: Any) -> None:
        for path, callback in self._callbacks:
            try:
                getattr(callback, name)(*arguments)
            except Exception as error:  # a user's code may raise anything
                self.errors[path] += 1
                if self.errors[path] == 1:
                    told = "the callback %s failed in %s, the sweep goes on: %s"
                    logger.warning(told, path, name, error, exc_info=True)
                else:
                    logger.info("the callback %s failed in %s: %s", path, name, error)

    def _news(self, history: View) -> Iterator[_Happening]:
        for number, one in enumerate(history.rounds[self._n_rounds :], start=self._n_rounds):
            trials = [trial for trial in history.suggested if trial.round == one.number]
            yield _Happening(one.time, 0, number, "on_round", (one, trials))
        self._n_rounds = len(history.rounds)
        for trial in history.suggested:
            if self._seen.get(trial.id) is not trial:
                self._seen[trial.id] = trial
                for run in trial.runs:
                    yield from self._news_of(trial, run)

    def _news_of(self, trial: Trial, run: Run) -> Iterator[_Happening]:
        since = self._n_reports.get(run.number, 0)
        self._n_reports[run.number] = len(run.measurements)
        for one in run.measurements[since:]:
            yield _Happening(one.time, 1, run.number, "on_report", (trial, run, one))
        end = (len(run.pauses), run.ended_at)
        n_before, ended_before = self._ends.get(run.number, (0, None))
        self._ends[run.number] = end
        if run.ended_at is None and len(run.pauses) > n_before and ended_before is None:
            run = _as_paused(run)  # it paused, and goes on already
        if run.ended_at is not None and (n_before, ended_before) != end:
            yield _Happening(run.ended_at, 2, run.number, "on_end", (trial, run))


def _as_paused(run: Run) -> Run:
    """A run that goes on, as it was when it paused last."""
    assert run.partial is not None
    at = next((one.time for one in run.measurements if one.step == run.partial.step), 0.0)
    return replace(
        run,
        state="paused",
        ending=Ending.PAUSED,
        value=run.partial.value,
        step=run.partial.step,
        ended_at=at,
    )


def load_callbacks(sweep: Sweep, folder: str | os.PathLike[str]) -> Callbacks:
    """The callbacks of a sweep, constructed.

    Args:
        sweep: its settings.
        folder: of the sweep, from which no code is run.

    Raises:
        SweepError: one cannot be imported or constructed, is no ``Callback``, or lies in the
            sweep's folder.
    """
    for path in sweep.callbacks:
        check_outside(path, folder)
    made = []
    for path, one in zip(sweep.callbacks, callback_classes(sweep), strict=True):
        try:
            made.append((path, one()))
        except Exception as error:  # a user's code may raise anything
            reason = describe_import(error, sweep.working_folder)
            raise SweepError(f"the callback {path} cannot be made: {reason}") from error
    return Callbacks(made)


def callback_classes(sweep: Sweep) -> list[type[Callback]]:
    """The classes that a sweep names.

    Each is looked up as a trainer is: in the working directory, then in the installed packages.

    Raises:
        SweepError: one cannot be imported, or is no ``Callback``.
    """
    root = str(Path(sweep.working_folder or os.getcwd()).resolve())
    if sweep.callbacks and root not in sys.path:
        sys.path.insert(0, root)
    return [_find(path, root) for path in sweep.callbacks]


def _find(path: str, root: str) -> type[Callback]:
    module, _, attribute = path.partition(":")
    if not all(part.isidentifier() for part in [*module.split("."), attribute]):
        raise SweepError(f"a callback must be module:Class, got {path!r}")
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except (Exception, SystemExit) as error:  # a user's code may raise anything
        raise SweepError(f"the callback {path}: {describe_import(error, root)}") from error
    if not (isinstance(found, type) and issubclass(found, Callback)):
        raise SweepError(f"the callback {path} must be a subclass of nasbo.Callback, got {found!r}")
    return found
