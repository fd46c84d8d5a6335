"""Sweeps in W&B's offline files, read back."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import SweepFolder
from tests.rung_search import make_rung_folder
from tests.system.trackers import finished_track, log_of, read_offline, reports, track
from tests.tracking.sweeps import METRIC, add_finalists, cut, make_mixed

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]


def show(folder: Path, *words: str) -> str:
    return finished_track(folder, "--to", "wandb", *words, WANDB_MODE="offline")


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """The runs beside a sweep's folder, by their keys; each is there as one folder."""
    runs = read_offline(folder.parent / "wandb")
    assert len({run["id"] for run in runs}) == len(runs)
    return {run["id"].split("-", 2)[2]: run for run in runs}


def points(runs: dict[str, dict[str, Any]]) -> Counter[Any]:
    return Counter(
        ((key, name, row["_step"]), value)
        for key, run in runs.items()
        if run["kind"] in ("trial", "repeat")
        for row in run["rows"]
        for name, value in row.items()
        if not name.startswith("_")
    )


def test_what_is_shown_of_a_sweep(tmp_path: Path) -> None:
    folder = make_mixed(tmp_path / "mixed")
    add_finalists(folder)
    (folder / "report.html").write_text("a page")
    show(folder, "--name", "the first")
    runs = read(folder)
    assert set(runs) == {"sweep", "final", "final-00000"} | {
        f"{number:05d}" for number in (0, 1, 2, 3, 4, 5, 7, 8)
    }
    assert {run["group"] for run in runs.values()} == {f"the first-{_identity(runs)}"}
    assert runs["00000"]["config"] == SweepFolder(folder).history.trial(0).config
    assert runs["00007"]["kind"] == "repeat"
    assert [row["_step"] for row in runs["00002"]["rows"]] == [1, 2, 3]
    assert [row[METRIC] for row in runs["00002"]["rows"]] == [9.0, 8.0, 7.0]
    assert runs["00000"]["summary"]["nasbo.value"] == pytest.approx(4.3 / 3)
    assert runs["00003"]["summary"]["nasbo.state"] == "crashed"
    assert {key for key, run in runs.items() if run["exit"]} == {"00003"}
    assert runs["sweep"]["files"] == ["report.html"]


def _identity(runs: dict[str, dict[str, Any]]) -> str:
    return str(runs["sweep"]["id"].split("-")[1][:8])


def test_a_tracker_that_is_killed_doubles_nothing_and_misses_nothing(tmp_path: Path) -> None:
    whole = make_rung_folder(tmp_path / "whole", 5)
    n_lines = len((whole / JOURNAL_FILE).read_bytes().splitlines())
    folder, n_kills = tmp_path / "cut", 0
    for n in range(5, n_lines, n_lines // 6):
        cut(whole, folder, n)
        process = track(folder, "--to", "wandb", "--follow", WANDB_MODE="offline")
        _wait_for_a_new_run(folder.parent)
        process.kill()
        process.wait(timeout=60)
        n_kills += 1
    show(cut(whole, folder, n_lines))
    runs, history = read(folder), SweepFolder(whole).history
    print(f"{n_kills} kills; {len(runs)} runs, {sum(points(runs).values())} points")
    assert points(runs) == Counter(reports(history, METRIC).items())
    assert len(runs) == 1 + len(history.trials)
    failed = {f"{t.id:05d}" for t in history.trials if t.state == "failed"}
    assert {key for key, run in runs.items() if run["exit"]} == failed


def _wait_for_a_new_run(folder: Path) -> None:
    """Until something is being written: then a tracker is in the middle of it."""
    before = set(folder.glob("wandb/offline-run-*"))
    deadline = time.monotonic() + 60
    while set(folder.glob("wandb/offline-run-*")) <= before and time.monotonic() < deadline:
        time.sleep(0.01)


def test_a_second_tracker_writes_nothing_anew(tmp_path: Path) -> None:
    folder = make_rung_folder(tmp_path / "s", 3)
    show(folder)
    before = sorted((folder.parent / "wandb").glob("offline-run-*"))
    show(folder)
    assert sorted((folder.parent / "wandb").glob("offline-run-*")) == before
    assert "finished" in log_of(folder).read_text()
