"""Removal of the files of a start that failed before its first trial."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from nasbo.errors import JournalError, NasboError, SweepError
from nasbo.history.journal import write_durably
from nasbo.storage.lease import NAME as LEASE_FILE
from nasbo.storage.mirror import JOURNAL_FILE, location_of
from nasbo.storage.segments import FOLDER as SEGMENTS
from nasbo.sweeps.folder import SETTINGS_FILE, SPACE_FILE, SweepFolder

JOURNAL_FILES = (JOURNAL_FILE, f"{JOURNAL_FILE}.partial", f"{JOURNAL_FILE}.lock")


@dataclass(frozen=True)
class Files:
    """Files of a sweep in a folder, and its objects if the folder mirrors a bucket."""

    is_folder: bool
    names: frozenset[str]
    objects: frozenset[str]
    space: bytes = b""


def files_of(folder: Path) -> Files:
    """The present files of a sweep in a folder."""
    names = (*JOURNAL_FILES, SPACE_FILE, SETTINGS_FILE)
    found = frozenset(name for name in names if (folder / name).exists())
    space = (folder / SPACE_FILE).read_bytes() if SPACE_FILE in found else b""
    return Files(folder.exists(), found, _objects_of(folder), space)


def _objects_of(folder: Path) -> frozenset[str]:
    location = location_of(folder)
    if location is None:
        return frozenset()
    names = (LEASE_FILE, SPACE_FILE, SETTINGS_FILE)
    try:
        found = [name for name in names if location.read(name) is not None]
        return frozenset([*found, *location.sizes(SEGMENTS)])
    except OSError as error:
        raise SweepError(f"{location.url}: cannot be read: {error}") from error


@contextmanager
def taken_back(folder: Path, before: Files) -> Iterator[None]:
    """Remove what a start created if it fails in the block before any trial was suggested.

    Args:
        folder: the sweep's folder.
        before: files before the start, which stay.
    """
    try:
        yield
    except JournalError:
        raise  # another process may be writing there
    except NasboError:
        with suppress(NasboError, OSError):  # only the first error counts
            if SweepFolder(folder).history.n_suggested == 0:
                _remove(folder, before)
        raise


def _remove(folder: Path, before: Files) -> None:
    """Remove new files, the settings last: they mark the folder as a sweep."""
    if SPACE_FILE in before.names:
        write_durably(folder / SPACE_FILE, before.space)  # the start has overwritten it
    now, location = files_of(folder), location_of(folder)
    for name in sorted(now.objects - before.objects, key=_is_settings):
        if location is not None:
            location.delete(name)
    for name in sorted(now.names - before.names, key=_is_settings):
        (folder / name).unlink(missing_ok=True)
    if not before.is_folder:
        folder.rmdir()


def _is_settings(name: str) -> bool:
    return name == SETTINGS_FILE
