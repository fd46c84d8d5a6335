"""The folder of one trial comes in; its files go to the bucket and come back on another node."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

from nasbo.storage.location import Location


class TrialFiles:
    """A trial's folder on this node's disk, stored under the same name in the bucket.

    Args:
        location: the sweep's folder in the bucket.
        name: of the trial's folder in it.
        folder: on this node; emptied, and filled with what the bucket has.
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
        """Bring files that are new or have changed to the bucket; remove those that are gone.

        They go in the order in which they were written: if this breaks off, what is there is what
        the trainer had written at some time.
        """
        now = self._look()
        for name, mark in sorted(now.items(), key=lambda item: item[1]):
            if self._stored.get(name) != mark:
                self._location.write(f"{self._name}/{name}", (self.folder / name).read_bytes())
        for name in set(self._stored) - set(now):
            self._location.delete(f"{self._name}/{name}")
        self._stored = now

    def remove(self) -> None:
        """Free this node's disk; what counts is in the bucket."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _look(self) -> dict[str, tuple[int, int]]:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return {
            str(path.relative_to(self.folder)): (path.stat().st_mtime_ns, path.stat().st_size)
            for path in files
        }


def fetch_files(location: Location, name: str, folder: Path, files: Iterable[str]) -> None:
    """Bring a few of a trial's files here, where they exist; what lay here before is gone.

    Raises:
        OSError: the bucket cannot be read; none of them is here that was not read just now.
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
    """Remove a trial's files of one kind from the bucket."""
    for path in location.sizes(name):
        if fnmatch(path[len(name) + 1 :], pattern):
            location.delete(path)
