"""Log of a trial: what its trainer prints."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TextIO

LOG_FILE = "log.txt"


class TrialLog(io.TextIOBase):
    """Text file that exists from the first word on; later attempts append to it.

    Args:
        file: its path.
    """

    encoding = "utf-8"

    def __init__(self, file: Path) -> None:
        self._path = file
        self._file: TextIO | None = None

    def _opened(self) -> TextIO:
        if self._file is None:
            self._file = self._path.open("a", encoding=self.encoding, errors="replace")
        return self._file

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._opened().fileno()

    def write(self, text: str) -> int:
        n = self._opened().write(text)
        self._opened().flush()  # a killed process leaves all that it said
        return n

    def __getattr__(self, name: str) -> Any:
        """``buffer``, ``name`` and the like are those of the file."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._opened(), name)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


@contextmanager
def printed_to(folder: Path) -> Iterator[None]:
    """Write to ``log.txt`` in a trial's folder what Python prints to stdout and stderr.

    A worker process runs one trial at a time, so that its streams are the trial's.
    """
    log = TrialLog(folder / LOG_FILE)
    try:
        with redirect_stdout(log), redirect_stderr(log):
            yield
    finally:
        log.close()
