"""Watchdog for trials that are silent."""

from __future__ import annotations

import faulthandler
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


class Watchdog:
    """Ends this process, with a traceback in a file, if a trial is silent for too long.

    Args:
        file: for the traceback.
        timeout_s: maximum silence in seconds; ``None`` for no limit.
        store: stores the file where the driver finds it, before the process exits; ``None`` if it
            is there already.
    """

    def __init__(
        self, file: Path, timeout_s: float | None, store: Callable[[], None] | None = None
    ) -> None:
        self._file, self._timeout_s, self._store = file, timeout_s, store
        self._handle: TextIO | None = None
        self._timer: threading.Timer | None = None

    def start(self) -> None:
        self._file.unlink(missing_ok=True)
        if self._timeout_s is None:
            return
        self._handle = self._handle or self._file.open("w", encoding="utf-8")
        patience_s = self._timeout_s
        if self._store is not None:
            self._timer = threading.Timer(self._timeout_s, self._end)
            self._timer.daemon = True
            self._timer.start()
            patience_s += 30  # fallback in case Python itself and the timer hang
        faulthandler.dump_traceback_later(patience_s, exit=True, file=self._handle)

    def _end(self) -> None:
        assert self._handle is not None
        assert self._store is not None
        faulthandler.dump_traceback(self._handle)
        try:
            self._store()
        finally:
            os._exit(1)

    def stop(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._handle is not None:
            self._handle.close()
            self._handle = None
            self._file.unlink(missing_ok=True)

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.stop()
        try:
            yield
        finally:
            self.start()
