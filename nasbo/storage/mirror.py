"""Local mirror of a sweep in a bucket: settings, space and journal."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from nasbo.errors import SweepError
from nasbo.history.journal import Journal, is_locked
from nasbo.storage.lease import is_held
from nasbo.storage.location import Location, is_url
from nasbo.storage.remote_journal import RemoteJournal, fetch_journal

REMOTE_FILE = ".remote"
JOURNAL_FILE = "journal.jsonl"
_LOCAL_ONLY = (REMOTE_FILE, JOURNAL_FILE, f"{JOURNAL_FILE}.lock", f"{JOURNAL_FILE}.partial")


def cache_folder() -> Path:
    """Folder of all mirrors: ``$NASBO_CACHE``, else ``~/.cache/nasbo``."""
    return Path(os.environ.get("NASBO_CACHE") or "~/.cache/nasbo").expanduser()


def mirror_folder(url: str) -> Path:
    """Path of the mirror of a URL on this machine, whether it exists or not."""
    url = url.rstrip("/")
    name = f"{url.rpartition('/')[2]}-{hashlib.sha256(url.encode()).hexdigest()[:12]}"
    return cache_folder() / "mirrors" / name


def open_mirror(url: str) -> Path:
    """Download a sweep's files to its mirror; returns the local folder.

    Raises:
        SweepError: the bucket cannot be reached.
    """
    location = Location(url)
    folder = mirror_folder(url)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / REMOTE_FILE).write_text(location.url, encoding="utf-8")
    pull(folder)
    return folder


def open_named(name: str) -> Path:
    """The folder of a path or a URL; for a URL a mirror on this machine."""
    return open_mirror(name) if is_url(name) else Path(name)


def location_of(folder: str | os.PathLike[str]) -> Location | None:
    """The bucket of a folder, if it is a mirror."""
    try:
        return _location((Path(folder) / REMOTE_FILE).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None


@functools.lru_cache(maxsize=8)
def _location(url: str) -> Location:
    return Location(url)


def shown(folder: Path) -> str:
    """Name of a folder for users: the URL of a mirror, else the path."""
    location = location_of(folder)
    return location.url if location else str(folder)


def pull(folder: Path) -> None:
    """Update a mirror from the bucket; the journal of a sweep that runs here is not touched.

    Raises:
        SweepError: the bucket cannot be reached.
    """
    location = location_of(folder)
    if location is None:
        return
    try:
        for name in ("space.yaml", "sweep.yaml"):
            _replace(folder / name, location.read(name))
        if not is_locked(folder / JOURNAL_FILE):
            journal = folder / JOURNAL_FILE
            data, _ = fetch_journal(location, journal.read_bytes() if journal.exists() else b"")
            _replace(journal, data or None)
    except OSError as error:
        raise SweepError(f"{location.url}: cannot be read: {error}") from error


def _replace(file: Path, data: bytes | None) -> None:
    """Atomically replace a file by the bucket's content, if they differ."""
    if data is None:
        file.unlink(missing_ok=True)
    elif not file.exists() or file.read_bytes() != data:
        partial = file.with_name(f"{file.name}.pulled")
        partial.write_bytes(data)
        partial.replace(file)


def push(folder: Path, names: Iterable[str] | None = None) -> None:
    """Upload files of a mirror; by default all but the journal and the folders of trials.

    Raises:
        SweepError: the bucket cannot be written.
    """
    location = location_of(folder)
    if location is None:
        return
    try:
        for name in _results(folder) if names is None else names:
            location.write(name, (folder / name).read_bytes())
    except OSError as error:
        raise SweepError(f"{location.url}: cannot be written: {error}") from error


def _results(folder: Path) -> list[str]:
    files = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return [
        str(path)
        for path in files
        if path.parts[0] not in ("trials", ".tune") and str(path) not in _LOCAL_ONLY
    ]


def open_journal(folder: Path, tell: Callable[[str], object] | None = None) -> Journal:
    """The writer of a folder's journal, local or in a bucket."""
    location = location_of(folder)
    if location is None:
        return Journal(folder / JOURNAL_FILE)
    if tell is None:
        return RemoteJournal(folder / JOURNAL_FILE, location)
    return RemoteJournal(folder / JOURNAL_FILE, location, tell=tell)


def is_running(folder: Path) -> bool:
    """Whether a living process writes a folder's journal, on any machine."""
    if is_locked(folder / JOURNAL_FILE):
        return True
    location = location_of(folder)
    return location is not None and is_held(location)
