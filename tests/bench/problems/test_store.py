"""Values on disk: computed once, shared by processes, separate for each version."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from nasbo.bench.problems import store as store_module
from nasbo.bench.problems.folders import tables_folder
from nasbo.bench.problems.store import Result, Store, shipped
from nasbo.errors import NasboError


def test_a_value_is_computed_once(tables: Path) -> None:
    calls: list[int] = []

    def compute() -> float:
        calls.append(1)
        return 2.5

    assert [Store("one-1").value("key", compute) for _ in range(3)] == [2.5] * 3
    assert len(calls) == 1
    assert Store("one-1").find("other") is None


def test_versions_and_makers_are_kept_apart(tables: Path) -> None:
    Store("one-1", "sklearn 1").add(Result("key", 1.0, 0.1))
    assert Store("one-1", "sklearn 2").find("key") is None
    assert Store("one-2", "sklearn 1").find("key") is None
    assert Store("one-1", "sklearn 1").results() == [Result("key", 1.0, 0.1)]


def test_the_first_value_of_a_key_stays(tables: Path) -> None:
    store = Store("one-1")
    store.add(Result("key", 1.0, 0.0))
    store.add(Result("key", 2.0, 0.0))
    assert store.find("key") == 1.0


def test_nothing_is_written_by_looking(tables: Path) -> None:
    assert Store("one-1").find("key") is None
    assert Store("one-1").results() == []
    assert not tables.exists()


def test_values_that_come_with_nasbo_answer_too(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store("one-1", "sklearn 1")
    store.add(Result("a", 1.0, 0.1), Result("b step 1", 2.0, 0.1), Result("b step 2", 3.0, 0.1))
    folder = tmp_path / "published"
    assert store.publish(folder / "one-1.jsonl.xz") == 3
    store.path.unlink()
    assert store.find("a") is None
    monkeypatch.setattr(store_module, "SHIPPED", folder)
    shipped.cache_clear()
    assert store.find("a") == 1.0
    assert store.curve("b", 2, lambda: pytest.fail("it is known")) == [2.0, 3.0]
    assert Store("one-1", "sklearn 2").find("a") is None
    store.add(Result("c", 4.0, 0.1))
    assert [one.key for one in store.results()] == ["a", "b step 1", "b step 2", "c"]
    assert store.find("a") == 1.0
    shipped.cache_clear()


def _add_many(first: int) -> None:
    for k in range(first, first + 40):
        Store("shared-1").value(str(k), lambda k=k: float(k))  # type: ignore[misc]


def test_processes_write_side_by_side(tables: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(_add_many, [0, 20]))
    found = {result.key: result.value for result in Store("shared-1").results()}
    assert found == {str(k): float(k) for k in range(60)}


def test_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    monkeypatch.setenv("NASBO_TABLES", str(blocked))
    with pytest.raises(NasboError, match=r"one-1\.sqlite: .*NASBO_TABLES"):
        Store("one-1").add(Result("key", 1.0, 0.0))


def test_a_file_that_is_no_store_is_named(tables: Path) -> None:
    tables.mkdir()
    (tables / "one-1.sqlite").write_text("these are not the values you are looking for" * 50)
    with pytest.raises(NasboError, match=r"one-1\.sqlite: .*not a database"):
        Store("one-1").find("key")


def test_tables_lie_with_the_data_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NASBO_DATA", "/data")
    monkeypatch.delenv("NASBO_TABLES", raising=False)
    assert tables_folder() == Path("/data/tables")
    monkeypatch.setenv("NASBO_TABLES", "/elsewhere")
    assert tables_folder() == Path("/elsewhere")
