"""Sweep that is shared by all read-only tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasbo.report.study import Study, open_study
from tests.report.sample import make_folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("runs") / "sample")


@pytest.fixture(scope="session")
def study(folder: Path) -> Study:
    return open_study(folder)
