"""Synthetic data sets of the right size, and a folder for stored values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nasbo.bench.problems.openml import SETS, DataSet


def write_set(folder: Path, data_set: DataSet, n_rows: int | None = None) -> Path:
    """Write a file for the loader; the label follows the first feature, with noise."""
    rng = np.random.default_rng(data_set.data_id)
    features = rng.standard_normal((n_rows or data_set.n_rows, data_set.n_features))
    labels = features[:, 0] + 0.5 * rng.standard_normal(len(features)) > 0.3
    names = [f"feature_{i}" for i in range(data_set.n_features)]
    path = folder / "openml" / data_set.file
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = np.column_stack([features, labels])
    np.savetxt(path, rows, delimiter=",", header=",".join([*names, "class"]), comments="", fmt="%g")
    return path


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stored values go to a folder of the test."""
    monkeypatch.setenv("NASBO_TABLES", str(tmp_path / "tables"))
    return tmp_path / "tables"


@pytest.fixture(scope="session")
def openml_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with all sets."""
    folder = tmp_path_factory.mktemp("data")
    for data_set in SETS.values():
        write_set(folder, data_set)
    return folder


@pytest.fixture
def data(openml_folder: Path, tables: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of the test is that of the synthetic data."""
    monkeypatch.setenv("NASBO_DATA", str(openml_folder))
    return openml_folder
