"""Tables of random configs, and the commands that list problems and make tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from nasbo.bench.problems import PROBLEMS
from nasbo.bench.tabulate import evaluate_one, tabulate
from nasbo.cli import cli
from nasbo.errors import NasboError

NAME = "svm_monks1"


def test_a_table_continues_where_it_was_left(data: Path) -> None:
    alone = [evaluate_one(NAME, 0, k) for k in range(3)]
    store = PROBLEMS[NAME].store
    assert store is not None
    before = store().results()
    assert len(before) == 3
    done: list[int] = []
    found = tabulate(NAME, 5, seed=0, progress=lambda: done.append(1))
    assert found.values[:3] == tuple(alone)
    assert (len(done), len(found.values), len(found.seconds)) == (5, 5, 5)
    assert set(before) <= set(store().results())
    assert evaluate_one(NAME, 1, 0) != alone[0]


def test_cheap_problems_are_not_tabulated() -> None:
    with pytest.raises(NasboError, match=r"share answers within milliseconds"):
        tabulate("share", 5)


def test_the_command_makes_a_table(data: Path, tables: Path) -> None:
    done = CliRunner().invoke(cli, ["bench", "tabulate", NAME, "--n", "2", "--processes", "1"])
    assert done.exit_code == 0, done.output
    assert f"{tables / 'svm_monks1-2.sqlite'}: 2 configs" in done.output


def test_the_command_says_what_is_missing(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "openml" / "extra_monks-problems-1.csv"
    path.parent.mkdir()
    path.write_text("a,class\n1,0\n2,1\n")
    monkeypatch.setenv("NASBO_DATA", str(tmp_path))
    done = CliRunner().invoke(cli, ["bench", "tabulate", NAME])
    assert done.exit_code == 2
    assert "must have 556 rows and 6 features, got 2 and 1" in done.output
    unknown = CliRunner().invoke(cli, ["bench", "tabulate", "nonsense"])
    assert unknown.exit_code == 2
    assert "problem must be one of accel_nasbench, ackley53" in unknown.output


def test_the_list_names_every_problem() -> None:
    shown = CliRunner().invoke(cli, ["bench", "problems"])
    assert shown.exit_code == 0
    lines = shown.output.splitlines()
    assert {line.split()[0] for line in lines[1:]} == PROBLEMS.keys()
    assert "0.1" in next(line for line in lines if line.strip().startswith("jenatton_small "))
    rows = json.loads(CliRunner().invoke(cli, ["bench", "problems", "--json"]).output)
    assert {row["problem"] for row in rows} == PROBLEMS.keys()
