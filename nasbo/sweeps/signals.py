"""SIGTERM handled as Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading


class terminate_as_interrupt:  # noqa: N801
    """Makes SIGTERM end a run as Ctrl-C does; Tune itself would abort."""

    def __enter__(self) -> None:
        self._is_main = threading.current_thread() is threading.main_thread()
        if self._is_main:
            self._before = signal.signal(signal.SIGTERM, self._interrupt)

    def __exit__(self, *_: object) -> None:
        if self._is_main:
            signal.signal(signal.SIGTERM, self._before)

    def _interrupt(self, number: int, frame: object) -> None:
        """Send SIGUSR1, on which Tune stops; before Tune handles it, raise KeyboardInterrupt."""
        if not callable(signal.getsignal(signal.SIGUSR1)):
            raise KeyboardInterrupt
        os.kill(os.getpid(), signal.SIGUSR1)
