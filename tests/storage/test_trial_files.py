"""Folder of a trial in a bucket, restored on another node."""

from __future__ import annotations

import os
from pathlib import Path

from nasbo.storage.location import Location
from nasbo.storage.trial_files import TrialFiles, delete_files, fetch_files

NAME = "trials/00003"


def test_files_come_back_elsewhere(tmp_path: Path, location: Location) -> None:
    files = TrialFiles(location, NAME, tmp_path / "a")
    (files.folder / "checkpoint.pt").write_bytes(b"weights")
    (files.folder / "logs").mkdir()
    (files.folder / "logs" / "x.txt").write_text("1")
    files.store()
    (files.folder / "logs" / "x.txt").unlink()
    (files.folder / "checkpoint.pt").write_bytes(b"better weights")
    files.store()
    other = TrialFiles(location, NAME, tmp_path / "b")
    assert (other.folder / "checkpoint.pt").read_bytes() == b"better weights"
    assert not (other.folder / "logs").exists()
    assert other.folder.stat().st_mode & 0o077 == 0


def test_only_what_changed_is_stored_in_the_order_of_writing(
    tmp_path: Path, location: Location
) -> None:
    files = TrialFiles(location, NAME, tmp_path / "a")
    stored: list[str] = []
    write = location.write
    location.write = lambda name, data, attempts=1: (stored.append(name), write(name, data))[1]  # type: ignore[method-assign, misc]
    for age, name in ((30, "z"), (20, "a"), (10, "m")):
        (files.folder / name).write_text(name)
        os.utime(files.folder / name, (1e9 - age, 1e9 - age))
    files.store()
    files.store()
    assert stored == [f"{NAME}/z", f"{NAME}/a", f"{NAME}/m"]


def test_leftovers_of_this_node_are_not_mixed_in(tmp_path: Path, location: Location) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "checkpoint.pt").write_text("of another attempt, never stored")
    assert list(TrialFiles(location, NAME, tmp_path / "a").folder.iterdir()) == []


def test_single_files_are_fetched_and_deleted(tmp_path: Path, location: Location) -> None:
    for name in ("checkpoint.pt", "checkpoint_best.pt", "error.txt"):
        location.write(f"{NAME}/{name}", name.encode())
    (tmp_path / "old.txt").write_text("no longer there")
    fetch_files(location, NAME, tmp_path, ["error.txt", "old.txt"])
    assert (tmp_path / "error.txt").read_text() == "error.txt"
    assert not (tmp_path / "old.txt").exists()
    delete_files(location, NAME, "checkpoint*")
    assert location.sizes(NAME) == {f"{NAME}/error.txt": 9}
