"""Entry of a sweep in the list of jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasbo.storage.mirror import open_mirror
from nasbo.sweeps.job import job_metadata, sweep_name
from nasbo.sweeps.settings import Sweep

SWEEP = Sweep("some/where/svm.yaml", "own.module:train")


def test_metadata_are_plain_words(tmp_path: Path) -> None:
    found = job_metadata(tmp_path / "first", SWEEP)
    assert all(isinstance(value, str) for value in found.values())
    assert found["sweep"] == "first"
    assert (found["space"], found["method"]) == ("svm", "attnbo")
    assert found["folder"] == str(tmp_path / "first")
    assert found["report"] == f"nasbo report {tmp_path / 'first'} --serve"
    address = "http://127.0.0.1:8787/"
    assert job_metadata(tmp_path, SWEEP, address)["report"] == address


def test_folders_in_an_object_store() -> None:
    assert sweep_name("s3://bucket/runs/first/") == "first"
    found = job_metadata("s3://bucket/runs/first", SWEEP)
    assert (found["sweep"], found["folder"]) == ("first", "s3://bucket/runs/first")


def test_a_mirror_is_called_as_its_folder_in_the_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NASBO_CACHE", str(tmp_path / "cache"))
    url = f"file://{tmp_path}/runs/first"
    mirror = open_mirror(url)
    assert mirror.name != "first"
    assert sweep_name(mirror) == "first"
    found = job_metadata(mirror, SWEEP)
    assert (found["sweep"], found["folder"]) == ("first", url)
