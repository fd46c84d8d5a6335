"""Observers of a running sweep, called from a background thread that isolates their errors."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nasbo.history import History, View
from nasbo.sweeps.callbacks import Callbacks

logger = logging.getLogger(__name__)
PERIOD_S = 0.5
MAX_SHARE = 0.1
"""Maximum share of the driver's time for observers: a long history takes longer to read."""
Observer = Callable[[View, str], Any]
PATIENCE_S = 60.0
"""How long the end of a sweep waits for callbacks that are busy."""


@dataclass(frozen=True)
class Observers:
    """Observers of a run.

    Attributes:
        observers: called about twice a second with a snapshot of the history and a note.
        tell: called once with text to print, such as the dashboard's address.
        report_url: of the live report, for Ray's list of jobs.
    """

    observers: tuple[Observer, ...] = ()
    tell: Callable[[str], Any] | None = None
    report_url: str = ""


class ObserverThread:
    """Calls observers from a background thread, as the main thread belongs to Tune.

    An observer that raises is logged once and called again next time.

    Args:
        history: of the search.
        note: returns a short note on the present state.
        observers: functions to call.
    """

    def __init__(
        self, history: History, note: Callable[[], str], observers: Sequence[Observer]
    ) -> None:
        self._history, self._note, self._observers = history, note, observers
        self._failed: set[int] = set()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="observers", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self._show("")

    def _loop(self) -> None:
        took = 0.0
        while not self._end.wait(max(PERIOD_S, took / MAX_SHARE)):
            begin = time.thread_time()
            try:
                note = self._note()
            except Exception as error:
                note = ""
                self._log_once(-1, error)
            self._show(note)
            took = time.thread_time() - begin

    def _show(self, note: str) -> None:
        history = self._history.snapshot()
        for index, observer in enumerate(self._observers):
            try:
                observer(history, note)
            except Exception as error:
                self._log_once(index, error)

    def _log_once(self, index: int, error: Exception) -> None:
        if index not in self._failed:
            self._failed.add(index)
            logger.warning("an observer failed, the sweep goes on: %s", error, exc_info=True)


class CallbackThread:
    """Calls a sweep's callbacks from a thread of its own: what they wait for, nothing else does.

    Args:
        history: of the search.
        callbacks: who is called.
    """

    def __init__(self, history: History, callbacks: Callbacks) -> None:
        self._history, self._callbacks = history, callbacks
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="callbacks", daemon=True)

    def __enter__(self) -> None:
        self._first = self._history.snapshot()
        self._callbacks.mark(self._first)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            logger.warning("callbacks are still busy %.0f s after the end: left alone", PATIENCE_S)

    def _loop(self) -> None:
        self._callbacks.start(self._first)
        took = 0.0
        while not self._end.wait(max(PERIOD_S, took / MAX_SHARE)):
            begin = time.thread_time()
            self._callbacks(self._history.snapshot())
            took = time.thread_time() - begin
        self._callbacks.stop(self._history.snapshot())
