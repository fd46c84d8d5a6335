"""One trial of a sweep in a bucket, without Ray: its files in the bucket and on its node."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nasbo.storage.location import Location
from nasbo.sweeps.settings import Sweep
from nasbo.tune.trial import CAUSE, TIMEOUT_FILE, TrialTask, TuneSession, run_trial


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Reports of the trial to Tune; its node's disk is a folder of the test."""
    told: list[dict[str, Any]] = []
    (tmp_path / "disk").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "disk"))
    monkeypatch.setattr("nasbo.tune.trial.tune", SimpleNamespace(report=told.append))
    context = SimpleNamespace(get_node_id=lambda: "node")
    monkeypatch.setattr(
        "nasbo.tune.trial.ray",
        SimpleNamespace(get_runtime_context=lambda: context, get_gpu_ids=list),
    )
    return told


def task_of(tmp_path: Path, trainer: str, timeout_s: float | None = None) -> TrialTask:
    url = f"file://{tmp_path}/bucket"
    sweep = Sweep("simulation", trainer, metric="loss", report_timeout_s=timeout_s)
    return TrialTask(str(tmp_path), sweep, url=url)


def left(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "disk").rglob("*") if path.is_file()]


@pytest.mark.parametrize("kind", ["report", "value"])
def test_a_nodes_disk_is_free_when_a_trial_has_ended(
    kind: str, tmp_path: Path, reports: list[dict[str, Any]]
) -> None:
    task = task_of(tmp_path, "tests.tune.toy:returning")
    run_trial(
        {"trial": 3, "config": {"kind": kind}, "n_out_of_memory": 0, "step": 0, "until": None}, task
    )
    assert not reports[-1].get(CAUSE)
    assert (tmp_path / "bucket/trials/00003/weights.bin").read_text() == kind
    assert left(tmp_path) == []


def test_the_traceback_of_a_crash_is_stored_before_the_disk_is_freed(
    tmp_path: Path, reports: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = task_of(tmp_path, "tests.tune.toy:endings")
    config = {
        "trial": 3,
        "config": {"kind": "crash"},
        "n_out_of_memory": 0,
        "step": 0,
        "until": None,
    }
    run_trial(config, task)
    assert reports[-1][CAUSE] == "crashed"
    assert "a bug of the user" in (tmp_path / "bucket/trials/00003/error.txt").read_text()
    assert left(tmp_path) == []

    def full(*_: Any) -> None:
        raise OSError("no route to the bucket")

    monkeypatch.setattr(Location, "write", full)
    run_trial(config, task)
    assert reports[-1][CAUSE] == "lost"
    assert left(tmp_path) == []


def test_a_silent_trial_stores_its_stack_and_frees_the_disk(
    tmp_path: Path, reports: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr("nasbo.tune.trial.os._exit", ended.append)
    session = TuneSession(task_of(tmp_path, "m:f", timeout_s=60.0), 3)
    (session.folder / "weights.bin").write_text("large")
    session._watchdog.start()
    session._watchdog._end()
    session._watchdog.stop()
    assert ended == [1]
    assert (
        "test_trial_in_bucket.py" in (tmp_path / "bucket/trials/00003" / TIMEOUT_FILE).read_text()
    )
    assert left(tmp_path) == []
