"""Published cells in one file: they are not run again, and give the same table."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasbo.bench.published import adopt_cells, publish_cells
from nasbo.bench.results import load_results
from nasbo.bench.run import Settings, run_plan
from nasbo.bench.table import make_table
from nasbo.errors import NasboError
from tests.bench.test_run import small_plan


def test_published_cells_are_not_run_again(tmp_path: Path) -> None:
    first, second, shipped = (tmp_path / name for name in ("first", "second", "shipped"))
    run_plan(small_plan(), Settings(first, jobs=1))
    assert publish_cells(first, shipped / "tiny.jsonl.xz") == 4
    assert adopt_cells(second, shipped) == 4
    assert adopt_cells(second, shipped) == 0
    state = run_plan(small_plan(), Settings(second, jobs=1))
    assert (state.n_run, state.n_cached) == (0, 4)
    assert make_table(load_results(first)) == make_table(load_results(second))


def test_a_file_that_holds_no_cells_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl.xz").write_bytes(b"nothing")
    with pytest.raises(NasboError, match=r"bad\.jsonl\.xz: is no file of cells"):
        adopt_cells(tmp_path / "out", tmp_path)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    run_plan(small_plan(), Settings(tmp_path, jobs=1))
    (tmp_path / "taken").mkdir()
    with pytest.raises(NasboError, match="taken: cannot be written"):
        publish_cells(tmp_path, tmp_path / "taken")


def test_a_file_that_is_there_outlives_one_that_cannot_be_written(tmp_path: Path) -> None:
    run_plan(small_plan(), Settings(tmp_path, jobs=1))
    file = tmp_path / "tiny.jsonl.xz"
    file.write_bytes(b"before")
    (tmp_path / "tiny.jsonl.xz.partial").mkdir()  # in place of a full disk
    with pytest.raises(NasboError, match=r"tiny\.jsonl\.xz: cannot be written"):
        publish_cells(tmp_path, file)
    assert file.read_bytes() == b"before"
