"""Bucket for the tests: a folder of this disk behind the same file system layer."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasbo.storage.location import Location


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("NASBO_CACHE", str(tmp_path / "cache"))
    (tmp_path / "bucket").mkdir()
    return f"file://{tmp_path}/bucket/runs/first"


@pytest.fixture
def location(url: str) -> Location:
    return Location(url)
