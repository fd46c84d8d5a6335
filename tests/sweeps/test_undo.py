"""Failed starts: their files are removed, and existing ones stay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import ray
from rich.console import Console

from nasbo.errors import ClusterError, JournalError, SweepError
from nasbo.start import Display, resume_sweep, start_or_resume, start_sweep
from nasbo.storage.mirror import JOURNAL_FILE, open_named
from nasbo.sweeps.folder import SweepFolder
from nasbo.sweeps.undo import files_of, taken_back
from nasbo.tune import door
from tests.test_start import finished

DISPLAY = Display(Console(quiet=True))
NOWHERE = "127.0.0.1:1"
GIVEN = {"trainer": "tests.tune.toy:simulation", "method": "random", "trials": 2, "slots": "1"}


@contextmanager
def alone() -> Iterator[None]:
    """As in a process without a Ray, with a short timeout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ray, "is_initialized", lambda: False)
        patch.setattr(door, "PATIENCE_S", 0.1)
        yield


def fail_to_start(folder: Path) -> None:
    with alone(), pytest.raises(ClusterError, match=f"no Ray at {NOWHERE}"):
        start_sweep("simulation", folder, {**GIVEN, "address": NOWHERE}, DISPLAY)


def listed(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_a_new_folder_is_gone(tmp_path: Path) -> None:
    for _ in range(2):
        fail_to_start(tmp_path / "runs" / "x")
        assert not (tmp_path / "runs" / "x").exists()


def test_files_of_the_user_stay(tmp_path: Path) -> None:
    for name in ("notes.txt", "space.yaml"):
        (tmp_path / name).write_text("# mine")
    fail_to_start(tmp_path)
    assert listed(tmp_path) == ["notes.txt", "space.yaml"]
    assert (tmp_path / "space.yaml").read_text() == "# mine"


def test_a_folder_in_a_bucket_is_free_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NASBO_CACHE", str(tmp_path / "cache"))
    (tmp_path / "bucket" / "x").mkdir(parents=True)
    (tmp_path / "bucket" / "x" / "notes.txt").write_text("mine")
    for _ in range(2):
        fail_to_start(open_named(f"file://{tmp_path}/bucket/x"))
        assert listed(tmp_path / "bucket") == ["x/notes.txt"]


def test_a_sweep_that_goes_on_keeps_everything(tmp_path: Path) -> None:
    folder = finished(tmp_path / "s", n_trials=20)
    before = (folder / JOURNAL_FILE).read_bytes()
    with alone(), pytest.raises(ClusterError):
        resume_sweep(folder, None, DISPLAY, {"address": NOWHERE})
    with alone(), pytest.raises(ClusterError):
        start_or_resume("simulation", folder, {**GIVEN, "trials": 20, "address": NOWHERE}, DISPLAY)
    assert (folder / JOURNAL_FILE).read_bytes().startswith(before)
    assert SweepFolder(folder).history.n_suggested == 9
    assert {"sweep.yaml", "space.yaml"} <= set(listed(folder))


@pytest.mark.parametrize("error", [JournalError, SweepError])
def test_what_another_process_or_a_trial_left_stays(tmp_path: Path, error: type[Exception]) -> None:
    before = files_of(tmp_path / "s")
    folder = finished(tmp_path / "s")
    with pytest.raises(error), taken_back(folder, before):
        raise error("it failed")
    assert SweepFolder(folder).history.n_suggested == 9


@pytest.mark.ray
def test_the_same_folder_with_the_right_address(tmp_path: Path) -> None:
    fail_to_start(tmp_path / "x")
    assert start_sweep("simulation", tmp_path / "x", GIVEN, DISPLAY) == 0
    assert SweepFolder(tmp_path / "x").history.n_ended == 2
