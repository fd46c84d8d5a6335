"""Command nasbo bench."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nasbo.cli import cli

PLAIN, NEARBY = "tests.bench.tiny:PLAIN", "tests.bench.tiny:Nearby"


def nasbo(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words))


def test_a_benchmark_from_start_to_table(tmp_path: Path) -> None:
    out = tmp_path / "b"
    words = ["bench", "--problems", PLAIN, "--methods", f"{NEARBY},random", "--seeds", "2",
             "--trials", "5", "--jobs", "1", "--out", str(out)]  # fmt: skip
    done = nasbo(*words)
    assert done.exit_code == 0, done.output
    assert "Mean rank over all problems" in done.stdout
    assert "4 of 4 cells" in done.stderr
    assert (out / "table.md").is_file()
    again = nasbo(*words, "--json")
    assert again.exit_code == 0
    assert json.loads(again.stdout)["methods"] == [NEARBY, "random"]
    assert "(4 found)" in again.stderr
    table = nasbo("bench", "table", str(out), "--methods", "random", "--json")
    assert json.loads(table.stdout)["methods"] == ["random"]


def test_crashed_cells_make_the_exit_code(tmp_path: Path) -> None:
    words = ("--methods", "random", "--seeds", "1", "--trials", "3", "--jobs", "1", "--out")
    problems = f"{PLAIN},tests.bench.tiny:broken_problem"
    done = nasbo("bench", "--problems", problems, *words, str(tmp_path / "a"))
    assert done.exit_code == 1
    assert "crashed: tests.bench.tiny:broken_problem random seed 0" in done.stderr
    assert "ValueError: the left branch is broken" in done.stderr
    assert "1 cells are missing" in done.stdout
    alone = "tests.bench.tiny:broken_problem"
    none = nasbo("bench", "--problems", alone, *words, str(tmp_path / "b"))
    assert none.exit_code == 1
    assert "every cell crashed" in none.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--problems", "nope"), "problem must be one of"),
        (("--suite", "nope"), "suite must be one of"),
        (("--problems", PLAIN, "--methods", "nope"), "unknown method 'nope'"),
        (("--methods", "random"), "--suite NAME or --problems A,B must be given"),
        (("--trials", "3", "suites"), "--trials belongs behind 'suites'"),
    ],
)
def test_bad_input_is_one_line_and_code_2(words: tuple[str, ...], message: str) -> None:
    done = nasbo("bench", *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.output


def test_words_without_work() -> None:
    assert "nasbo bench --suite quick" in nasbo("bench").stdout
    listed = nasbo("bench", "suites").stdout
    assert "attnbo-paper" in listed
    assert "10 seeds × 80 trials" in listed
    for word in ("event-loop", "journal", "table", "cluster", "carry"):
        assert nasbo("bench", word, "--help").exit_code == 0


def test_cluster_in_words_and_numbers(tmp_path: Path) -> None:
    words = ["bench", "cluster", "--problem", PLAIN, "--method", "random", "--workers", "4",
             "--trials", "20", "--suggestion-seconds", "1"]  # fmt: skip
    done = nasbo(*words, "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "async against round at the same times" in done.stdout
    assert (tmp_path / "cluster.png").is_file()
    numbers = json.loads(nasbo(*words, "--schedule", "async", "--json").stdout)
    saved = json.loads((tmp_path / "cluster.json").read_text(encoding="utf-8"))
    assert (
        numbers["schedules"]["async"]["busy_share"] == (saved["schedules"]["async"]["busy_share"])
    )
    assert list(numbers["schedules"]) == ["async"]
