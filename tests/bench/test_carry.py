"""Published cells under the present version: carried where two checkouts give equal bits."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nasbo.bench.carry import Carriage, Carrying, difference
from nasbo.bench.cell import Cell, Protocol
from nasbo.bench.checkout import PRESENT, Checkout
from nasbo.bench.plan import Part, make_plan
from nasbo.bench.published import adopt_cells, cell_of, read_published, write_published
from nasbo.bench.run import Progress, Settings, run_plan
from nasbo.bench.spec import parse_method
from nasbo.bench.version import method_version
from nasbo.cli import cli
from tests.bench.records import record

METHODS, PROBLEMS = ("random", "evolution"), ("jenatton_small", "jenatton_large")
PROTOCOL = Protocol(trials=4)
DRAW = "    def propose(self, task: Task) -> list[Suggestion]:\n"


def checkout(folder: Path) -> Path:
    """Another checkout: the present code and one more constant, which changes only its hashes."""
    ignored = shutil.ignore_patterns("__pycache__", "published")
    shutil.copytree(PRESENT / "nasbo", folder / "nasbo", ignore=ignored)
    base = folder / "nasbo/methods/base.py"
    base.write_text(f"{base.read_text(encoding='utf-8')}\n_ONE_MORE = 1\n", encoding="utf-8")
    return folder


def edit(file: Path, before: str, after: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert before in text
    file.write_text(text.replace(before, after), encoding="utf-8")


def publish(old: Path, file: Path, cells: Sequence[Cell]) -> None:
    """Run cells with a checkout and publish them to a file."""
    outcomes = list(Checkout(old).run(cells, jobs=2))
    assert not any(outcome.error for outcome in outcomes)
    write_published([outcome.result for outcome in outcomes], file)


def some_cells(methods: Sequence[str] = METHODS, n_seeds: int = 2) -> list[Cell]:
    return [
        Cell(problem, method, seed, PROTOCOL)
        for problem in PROBLEMS
        for method in methods
        for seed in range(n_seeds)
    ]


def nasbo_carry(old: Path, file: Path, *words: str) -> Result:
    paths = ["--old", str(old), "--published", str(file), "--out", str(file.parent / "out")]
    return CliRunner().invoke(cli, ["bench", "carry", *paths, *words])


def present(method: str) -> str:
    return method_version(parse_method(method))


def test_cells_of_code_that_decides_the_same_are_carried(tmp_path: Path) -> None:
    old, file = checkout(tmp_path / "old"), tmp_path / "shipped" / "cells.jsonl.xz"
    publish(old, file, some_cells())
    before = {cell_of(r): r for r in read_published(file)}
    planned = nasbo_carry(old, file, "--dry-run", "--sample", "1")
    assert planned.exit_code == 0, planned.output
    assert "8 replays to run, 0 stored" in planned.stdout
    done = nasbo_carry(old, file, "--sample", "1")
    assert done.exit_code == 0, done.output
    assert "8 cells carried" in done.stdout
    assert "random, batch 1, on 2 problems: equal" in done.stderr
    for carried in read_published(file):
        was = before[cell_of(carried)]
        note = {"from": was["key"]["version"], "replays": 1}
        key = was["key"] | {"version": present(was["label"])}
        assert key != was["key"]
        assert carried == was | {"key": key, "carried": [note]}
    plan = make_plan([Part(PROBLEMS, METHODS, 2, PROTOCOL)])
    adopt_cells(tmp_path / "adopted", file.parent)
    assert run_plan(plan, Settings(tmp_path / "adopted", jobs=1)).n_cached == 8
    again = nasbo_carry(old, file)
    assert again.exit_code == 0
    assert "current already" in again.stdout
    assert "is as it was" in again.stdout


def test_a_method_that_differs_on_one_problem_is_refused_on_all(tmp_path: Path) -> None:
    old, file = checkout(tmp_path / "old"), tmp_path / "cells.jsonl.xz"
    other = f"{DRAW}        if self.space.n_subspaces > 4:\n            task.rng.random()\n"
    edit(old / "nasbo/methods/evolution.py", DRAW, other)
    publish(old, file, some_cells(["evolution"], n_seeds=1))
    before = file.read_bytes()
    done = nasbo_carry(old, file)
    assert done.exit_code == 1, done.output
    assert "differs: jenatton_large seed 0: trial 16: configs were" in done.stderr
    assert "refused: see jenatton_large" in done.stdout
    assert "is as it was" in done.stdout
    assert file.read_bytes() == before
    alone = nasbo_carry(old, file, "--problems", "jenatton_small")
    assert alone.exit_code == 0, alone.output
    assert "0 replays to run, 2 stored" in alone.stderr


def test_an_interrupted_run_goes_on_without_the_old_code(tmp_path: Path) -> None:
    old, file = checkout(tmp_path / "old"), tmp_path / "cells.jsonl.xz"
    publish(old, file, some_cells(["random"], n_seeds=1))
    carriage = Carriage(old, file, tmp_path / "out", jobs=1)

    def interrupt(state: Progress) -> None:
        if state.n_run == 3:  # the old code has run both cells, the present one its first
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Carrying(carriage).replay(interrupt)
    stored = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.json")}
    assert len(stored) == 3
    states: list[tuple[int, int]] = []
    second = Carrying(carriage)
    second.replay(lambda state: states.append((state.n_cached, state.n_run)))
    assert states == [(3, 0), (3, 1)]
    assert all(path.stat().st_mtime_ns == time for path, time in stored.items())
    assert second.write() == 2


def test_a_replay_that_crashes_refuses(tmp_path: Path) -> None:
    old, file = checkout(tmp_path / "old"), tmp_path / "cells.jsonl.xz"
    publish(old, file, some_cells(["random"], n_seeds=1)[:1])
    edit(old / "nasbo/bench/cell.py", "    begin = time.perf_counter()\n", "    1 / 0\n")
    done = nasbo_carry(old, file)
    assert done.exit_code == 1
    assert "ZeroDivisionError: division by zero" in done.stderr


def test_cells_of_other_code_and_other_problems_are_refused(tmp_path: Path) -> None:
    old, file = checkout(tmp_path / "old"), tmp_path / "cells.jsonl.xz"
    (found,) = Checkout(old).keys([Cell("jenatton_small", "random", 0, PROTOCOL)])
    cell = record(("jenatton_small", "random", 0), [1.0] * 12) | {"key": found.result}
    write_published([cell | {"key": found.result | {"version": "else"}}], file)
    done = nasbo_carry(old, file)
    assert done.exit_code == 1
    assert "the old checkout did not make it: version is" in " ".join(done.stdout.split())
    edit(old / "nasbo/bench/problems/jenatton.py", "version=VERSION", "version=VERSION + 1")
    newer = found.result["problem_version"] + 1
    write_published([cell | {"key": found.result | {"problem_version": newer}}], file)
    groups = Carrying(Carriage(old, file, tmp_path)).groups
    wanted = f"has another cell: problem_version is {newer - 1}, published {newer}"
    assert [(g.state, wanted in g.reason) for g in groups] == [("refused", True)]


def test_problems_that_cannot_be_run_here_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NASBO_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("NASBO_TABLES", raising=False)
    old, file = checkout(tmp_path / "old"), tmp_path / "cells.jsonl.xz"
    shutil.copytree(PRESENT / "search_spaces", old / "search_spaces")
    manifest = tmp_path / "data" / "cifar10" / "manifest.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("{}", encoding="utf-8")
    (found,) = Checkout(old).keys([Cell("cifar10_proxy", "random", 0, PROTOCOL)])
    assert not found.error
    cell = record(("cifar10_proxy", "random", 0), [1.0] * 12) | {"key": found.result}
    write_published([cell], file)
    done = nasbo_carry(old, file)
    assert done.exit_code == 0, done.output
    assert "not carried: takes hours" in done.stdout
    manifest.unlink()
    (group,) = Carrying(Carriage(old, file, tmp_path)).groups
    assert (group.state, "CIFAR-10 is needed" in group.reason) == ("left out", True)


def test_bad_input_is_named(tmp_path: Path) -> None:
    file = tmp_path / "cells.jsonl.xz"
    write_published([record(("jenatton_small", "random", 0), [1.0, 1.0, 1.0])], file)
    empty = nasbo_carry(tmp_path, file)
    assert empty.exit_code == 2
    assert "is no checkout: there is no nasbo/bench/cell.py" in empty.stderr
    unknown = nasbo_carry(PRESENT, file, "--methods", "gp")
    assert unknown.exit_code == 2
    assert "method must be one of random, got 'gp'" in unknown.stderr
    (tmp_path / "nasbo/bench").mkdir(parents=True)
    (tmp_path / "nasbo/bench/cell.py").write_text("raise OSError('no disk')", encoding="utf-8")
    broken = nasbo_carry(tmp_path, file)
    assert broken.exit_code == 2
    assert "its code cannot be run here" in broken.stderr
    assert "git worktree add" in nasbo_carry(tmp_path, file, "--help").stdout


@pytest.mark.parametrize(
    ("column", "at", "entry", "words"),
    [
        ("values", 3, 1.0000000000000002, "trial 3: values were 1.0, are 1.0000000000000002"),
        ("scores", 2, -0.0, "trial 2: scores were 1.0, are -0.0"),
        ("configs", 1, {"a": 1}, "trial 1: configs were {}, are {'a': 1}"),
        ("rounds", 0, [2, 2, 0.5], "sizes of rounds were [1, 1], are [2, 1]"),
        ("rounds", 0, [2, 1, 0.7], ""),
    ],
)
def test_differences_are_found_to_the_last_bit(
    column: str, at: int, entry: Any, words: str
) -> None:
    before = record(("p", "m", 0), [1.0] * 4)
    now = copy.deepcopy(before)
    now[column][at] = entry
    assert difference(before, json.loads(json.dumps(now))) == words
    assert "fallbacks" in difference(before, before | {"fallbacks": {"FitError": 1}})
    assert "trial 3" in difference(before, before | {"values": [1.0] * 3})
    assert "returned configs" in difference(before, before | {"returned": {"trials": [1]}})
    assert difference(before, before | {"returned": None}) == ""
