"""Conditional writes to one object: create it if absent, replace it if unchanged.

A read returns the object's version. A write names the version that it replaces, and the store
compares and writes atomically: of several writers that read the same version, one succeeds.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path
from typing import NamedTuple, Protocol

from nasbo.errors import JournalError
from nasbo.history.journal import write_durably

Version = dict[str, str]
"""Version of an object in the store's own form, such as an ETag."""
_NEVER: Version = {"e_tag": '"00000000000000000000000000000000"', "version": "1"}


class ChangedError(Exception):
    """The object is not the version that was to be replaced."""


class Found(NamedTuple):
    """An object with its version."""

    data: bytes
    version: Version


class VersionedObject(Protocol):
    """An object with conditional writes."""

    def read(self) -> Found | None:
        """The object and its version, ``None`` if there is no such object.

        Raises:
            OSError: the store cannot be reached.
        """

    def write(self, data: bytes, expected: Version | None) -> Version:
        """Replace a version of the object, or create it.

        Args:
            data: the new content, unique to this write.
            expected: the version to replace; ``None`` to create an object that does not exist.

        Raises:
            ChangedError: the object has another version, exists already, or is gone.
            JournalError: the store has no conditional writes.
            OSError: the store cannot be reached; the write may or may not have happened.
        """


class FileObject:
    """A file with conditional writes.

    Args:
        path: of the file; its folder is created if missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Found | None:
        """See ``VersionedObject``."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        return Found(data, _digest(data))

    def write(self, data: bytes, expected: Version | None) -> Version:
        """See ``VersionedObject``."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)  # file systems have no compare-and-swap
            found = self.read()
            if (found.version if found else None) != expected:
                raise ChangedError(str(self._path))
            write_durably(self._path, data)
        finally:
            os.close(folder)
        return _digest(data)


def _digest(data: bytes) -> Version:
    return {"e_tag": hashlib.sha256(data).hexdigest()}


def check_conditions(target: VersionedObject, data: bytes, url: str) -> None:
    """Check that a store respects write conditions: some accept the write and ignore them.

    Args:
        target: an object that exists.
        data: its content.
        url: of the object, for the error.

    Raises:
        JournalError: a write succeeded although its condition did not hold.
    """
    for expected, header in ((None, "If-None-Match"), (_NEVER, "If-Match")):
        try:
            target.write(data, expected)
        except ChangedError:
            continue
        raise lacks_conditions(url, f"it ignores {header}")


def lacks_conditions(url: str, reason: str) -> JournalError:
    """The error for a store on which two processes could write one sweep."""
    return JournalError(
        f"{url}: the store must support conditional writes (PUT with If-None-Match and If-Match), "
        f"but {reason}; use a newer server or a folder that all nodes share"
    )
