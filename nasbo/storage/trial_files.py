"""Files of one trial, synchronised with the bucket so that it can continue on another node."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

from nasbo.storage.location import Location


class TrialFiles:
    """A trial's local folder, mirrored in the bucket under the same name.

    Args:
        location: the sweep's folder in the bucket.
        name: name of the trial's folder there.
        folder: local folder; emptied, then filled from the bucket.
    """

    def __init__(self, location: Location, name: str, folder: Path) -> None:
        self._location, self._name, self.folder = location, name, folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        for path in location.sizes(name):
            data = location.read(path)
            if data is not None:
                file = folder / path[len(name) + 1 :]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
        self._stored = self._look()

    def store(self) -> None:
        """Upload new and changed files, and delete removed ones.

        Files are uploaded in the order in which they were written: after an interruption the bucket
        has a state that existed on disk at some time.
        """
        now = self._look()
        for name, mark in sorted(now.items(), key=lambda item: item[1]):
            if self._stored.get(name) != mark:
                self._location.write(f"{self._name}/{name}", (self.folder / name).read_bytes())
        for name in set(self._stored) - set(now):
            self._location.delete(f"{self._name}/{name}")
        self._stored = now

    def remove(self) -> None:
        """Delete the local folder; the bucket has everything."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _look(self) -> dict[str, tuple[int, int]]:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return {
            str(path.relative_to(self.folder)): (path.stat().st_mtime_ns, path.stat().st_size)
            for path in files
        }


def fetch_files(location: Location, name: str, folder: Path, files: Iterable[str]) -> None:
    """Download some of a trial's files, if they exist; old local copies are removed first.

    Raises:
        OSError: the bucket cannot be read; no old copy remains.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = list(files)
    for file in wanted:
        (folder / file).unlink(missing_ok=True)
    for file in wanted:
        data = location.read(f"{name}/{file}")
        if data is not None:
            (folder / file).write_bytes(data)


def delete_files(location: Location, name: str, pattern: str) -> None:
    """Delete a trial's files that match a pattern from the bucket."""
    for path in location.sizes(name):
        if fnmatch(path[len(name) + 1 :], pattern):
            location.delete(path)
