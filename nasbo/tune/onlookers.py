"""A running search comes in; those who look on are called, and cannot disturb it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nasbo.history import History, View

logger = logging.getLogger(__name__)
PERIOD_S = 0.5
MAX_SHARE = 0.1
"""Looking takes no more of the driver's time than this: a history of many trials takes longer."""
Look = Callable[[View, str], Any]


@dataclass(frozen=True)
class Audience:
    """Who watches a run.

    Attributes:
        looks: called with the history and a note about twice a second, in a thread of their own.
        tell: called with words to be printed once, such as where Ray's dashboard is.
        report_url: of the live report, for Ray's list of jobs.
    """

    looks: tuple[Look, ...] = ()
    tell: Callable[[str], Any] | None = None
    report_url: str = ""


class Onlookers:
    """Calls those who look on from a thread of its own, as the main thread belongs to Tune.

    Who raises is told of in the log, once, and is called again the next time.

    Args:
        history: of the search.
        note: tells what matters just now.
        looks: who is called.
    """

    def __init__(self, history: History, note: Callable[[], str], looks: Sequence[Look]) -> None:
        self._history, self._note, self._looks = history, note, looks
        self._failed: set[int] = set()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="onlookers", daemon=True)

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
        for place, look in enumerate(self._looks):
            try:
                look(history, note)
            except Exception as error:
                self._log_once(place, error)

    def _log_once(self, place: int, error: Exception) -> None:
        if place not in self._failed:
            self._failed.add(place)
            logger.warning("an onlooker failed, the sweep goes on: %s", error, exc_info=True)
