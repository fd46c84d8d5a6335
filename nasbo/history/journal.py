"""Journal: an append-only file of JSON lines that survives crashes.

Each line has a checksum chained to the line before, so that damage is never read as history. A torn
tail (an incomplete write) is cut off on opening; damage anywhere else is an error with the line
number. Events that belong together form one transaction: the first of them states the number of
lines, and an incomplete transaction at the end counts as torn.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import socket
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nasbo.errors import JournalError
from nasbo.history.events import Line as Event

_HEAD = b'{"event":'
_CRC_SIZE = len(',"crc":"00000000"}')


class Journal:
    """The only writer of a journal file.

    Args:
        path: the file; created if missing.

    Attributes:
        events: content of the file when it was opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(self.path)
        except OSError as error:
            raise JournalError(f"{self.path}: cannot be written: {error}") from error
        try:
            self._open()
        except BaseException:
            os.close(self._lock)
            raise

    def _open(self) -> None:
        with without_collection():
            self.events, self._size, self._crc = _read(self.path)
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.ftruncate(self._file, self._size)
        os.lseek(self._file, 0, os.SEEK_END)
        _sync_folder(self.path.parent)

    def append(self, *events: Event, sync: bool = True) -> None:
        """Write events as one transaction; with ``sync`` they are on disk on return.

        Raises:
            JournalError: the write failed; the file is restored, or, if that fails too, the journal
                is closed and the next opening cuts off the torn tail.
        """
        if self._file < 0:
            raise JournalError(f"{self.path}: is closed, open it again")
        first: Event = {**events[0], "lines": len(events)} if len(events) > 1 else events[0]
        crc, lines = self._crc, []
        for item in (first, *events[1:]):
            line, crc = _encode(item, crc)
            lines.append(line)
        data = b"".join(lines)
        try:
            _write_all(self._file, data)
            if sync:
                os.fsync(self._file)
            self._publish(data, sync)
        except OSError as error:
            self._undo()
            raise JournalError(f"{self.path}: cannot be written: {error}") from error
        except BaseException:  # after an interrupt, too, no half line may remain
            self._undo()
            raise
        self._size, self._crc = self._size + len(data), crc

    def _publish(self, data: bytes, sync: bool) -> None:
        """Hook for copies of the data elsewhere; a plain journal has none."""

    def _undo(self) -> None:
        try:
            os.ftruncate(self._file, self._size)
            os.lseek(self._file, self._size, os.SEEK_SET)
        except OSError as error:
            self.close()
            raise JournalError(f"{self.path}: cannot be repaired: {error}") from error

    def close(self) -> None:
        """Close the file and release its lock."""
        if self._file >= 0:
            os.close(self._file)
            os.close(self._lock)
            self._file = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def without_collection() -> Iterator[None]:
    """Pause garbage collection, which would double the time to read a long journal."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def read_events(path: str | os.PathLike[str]) -> list[Event]:
    """Read the events of a journal without lock and repair."""
    events, _, _ = _read(Path(path))
    return events


class JournalFollower:
    """Reads a journal that another process writes, each line once.

    Args:
        path: the file; it may not exist yet.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._restart()

    def _restart(self) -> None:
        self._size, self._crc, self._n_lines = 0, 0, 0

    def read(self) -> tuple[list[Event], bool]:
        """The events since the last call, and whether the file was rewritten in between.

        An incomplete line or transaction is returned by a later call.

        Raises:
            JournalError: a line is damaged, or the file cannot be read.
        """
        data, is_new = self._fetch()
        events, size, crc = _parse(data, self._crc, self._n_lines, self.path)
        self._size, self._crc = self._size + size, crc
        self._n_lines += len(events)
        return events, is_new

    def _fetch(self) -> tuple[bytes, bool]:
        """The bytes after the part that was read; all of them if the file has become shorter."""
        try:
            with self.path.open("rb") as file:
                is_new = os.fstat(file.fileno()).st_size < self._size
                if is_new:
                    self._restart()
                file.seek(self._size)
                return file.read(), is_new
        except FileNotFoundError:
            is_new = self._size > 0
            self._restart()
            return b"", is_new
        except OSError as error:
            raise JournalError(f"{self.path}: cannot be read: {error}") from error


def _encode(item: Event, crc: int) -> tuple[bytes, int]:
    try:
        body = json.dumps(item, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise JournalError(f"an event must be plain finite values: {error}") from error
    crc = zlib.crc32(body, crc)
    return body[:-1] + b',"crc":"%08x"}\n' % crc, crc


def _read(path: Path) -> tuple[list[Event], int, int]:
    """Events, size of the valid part in bytes, and its last checksum."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return [], 0, 0
    except OSError as error:
        raise JournalError(f"{path}: cannot be read: {error}") from error
    return _parse(data, 0, 0, path)


def _parse(data: bytes, crc: int, n_before: int, path: Path) -> tuple[list[Event], int, int]:
    """Parse bytes that follow ``n_before`` lines with checksum ``crc``;
    returns the same as ``_read``.
    """
    events: list[Event] = []
    marks = [(0, crc)]
    for number, line in enumerate(_lines(data), start=n_before + 1):
        decoded = _decode(line, marks[-1][1])
        if decoded is None and not line.endswith(b"\n"):
            _check_torn(line, number, path)
            break
        if decoded is None:
            raise JournalError(f"{path}:{number}: the line is damaged")
        events.append(decoded[0])
        marks.append((marks[-1][0] + len(line), decoded[1]))
    n_whole = _whole_transactions(events)
    return events[:n_whole], *marks[n_whole]


def _lines(data: bytes) -> list[bytes]:
    """Lines with their line feeds; ``splitlines`` would also split at carriage returns."""
    *whole, tail = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([tail] if tail else [])


def _check_torn(tail: bytes, number: int, path: Path) -> None:
    """Raise if a tail cannot come from a journal: the file is something else."""
    is_blank = number > 1 and not tail.strip(
        b"\0"
    )  # some file systems leave zeros after a power cut
    if not (is_blank or tail.startswith(_HEAD) or _HEAD.startswith(tail)):
        raise JournalError(f"{path}:{number}: is not a line of a journal")


def _decode(line: bytes, crc: int) -> tuple[Event, int] | None:
    if not line.endswith(b'"}\n') or len(line) <= _CRC_SIZE:
        return None
    body = line[: -_CRC_SIZE - 1] + b"}"
    crc = zlib.crc32(body, crc)
    if line[-_CRC_SIZE - 1 :] != b',"crc":"%08x"}\n' % crc:
        return None
    try:
        item: Any = json.loads(body)
    except ValueError:
        return None
    return (item, crc) if isinstance(item, dict) else None


def _whole_transactions(events: list[Event]) -> int:
    position = 0
    while position < len(events):
        after = position + int(events[position].get("lines", 1))
        if after > len(events):
            return position
        position = after
    return position


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _lock(path: Path) -> int:
    """Take the lock file next to the journal; the lock ends with this process."""
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    if not _try_lock(lock):
        time.sleep(0.2)  # a reader may hold the lock briefly while it tests it
        if not _try_lock(lock):
            holder = os.read(lock, 200).decode(errors="replace").strip() or "another process"
            os.close(lock)
            if holder == _whoami():
                holder = "this process itself: close() the search that holds it"
            raise JournalError(f"{path}: is being written by {holder}")
    os.ftruncate(lock, 0)
    os.write(lock, f"{_whoami()}\n".encode())
    return lock


def _whoami() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(path: str | os.PathLike[str]) -> bool:
    """Whether a living process writes the journal."""
    try:
        lock = os.open(f"{path}.lock", os.O_RDWR)
    except OSError:
        return False
    try:
        return not _try_lock(lock)
    finally:
        os.close(lock)


def write_durably(path: Path, content: bytes) -> None:
    """Write a file atomically and durably: complete or absent, even after a power cut."""
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a file's directory entry durable (fsync of the folder)."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
