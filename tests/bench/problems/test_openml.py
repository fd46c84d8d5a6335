"""OpenML loader: files, their sizes, the download as a fallback, and its message."""

from __future__ import annotations

from pathlib import Path
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

from nasbo.bench.problems.openml import MAX_ROWS, SETS, load_set
from nasbo.errors import NasboError
from tests.bench.conftest import write_set


@pytest.mark.parametrize("name", sorted(SETS))
def test_files_are_read_and_cut_to_size(name: str, data: Path) -> None:
    table = load_set(name)
    n = min(SETS[name].n_rows, MAX_ROWS)
    assert table.features.shape == (n, SETS[name].n_features - SETS[name].n_dropped)
    assert set(table.labels) == {0, 1}


def test_steel_comes_without_its_faults(data: Path) -> None:
    assert load_set("steel").features.shape[1] == 27


def test_a_part_keeps_the_classes_in_proportion(data: Path) -> None:
    rows = np.loadtxt(data / "openml" / SETS["steel"].file, delimiter=",", skiprows=1)
    share = rows[:, -1].mean()
    assert load_set("steel").labels.mean() == pytest.approx(share, abs=1 / MAX_ROWS)


def test_a_file_of_another_size_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NASBO_DATA", str(tmp_path))
    write_set(tmp_path, SETS["blood"], n_rows=100)
    with pytest.raises(NasboError, match=r"blood.*must have 748 rows and 4 features, got 100 and"):
        load_set("blood")


def test_a_file_that_is_no_table_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NASBO_DATA", str(tmp_path))
    path = write_set(tmp_path, SETS["blood"])
    path.write_text("a,b\nc,d\n")
    with pytest.raises(NasboError, match=r"10101_blood.*rows of numbers are needed"):
        load_set("blood")


def test_without_file_and_network_the_message_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(**options: object) -> None:
        raise URLError("no route")

    monkeypatch.setenv("NASBO_DATA", str(tmp_path))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", unreachable)
    with pytest.raises(NasboError, match=r"put 37_diabetes.csv .* into .*openml, or .*no route"):
        load_set("diabetes")


def test_a_fetched_set_becomes_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As OpenML serves monks-problems: categories and labels as text."""
    rng, n = np.random.default_rng(0), SETS["monks1"].n_rows
    frame = pd.DataFrame(
        {f"attr{i}": pd.Categorical(rng.integers(1, 4, n).astype(str)) for i in range(5)}
    )
    frame["number"] = rng.random(n)
    target = pd.Series(np.where(frame["number"] > 0.5, "yes", "no"), dtype="category")
    asked: dict[str, object] = {}

    def fetch(**options: object) -> Bunch:
        asked.update(options)
        return Bunch(data=frame, target=target)

    monkeypatch.setenv("NASBO_DATA", str(tmp_path))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    table = load_set("monks1")
    assert asked["data_id"] == 333
    assert set(table.features[:, 0]) == {0.0, 1.0, 2.0}
    assert (table.labels == (table.features[:, 5] > 0.5)).all()
