"""Fronts of sweeps: choice of one trial, and what commands and tables show."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nasbo.cli import cli
from nasbo.errors import SweepError
from nasbo.search import Search
from nasbo.storage import JOURNAL_FILE
from nasbo.sweeps.folder import SweepFolder, create_folder
from nasbo.sweeps.pick import pick
from nasbo.sweeps.settings import Sweep

SIZED = "tests.tune.sized:train"
VALUES = {1: 0.30, 2: 0.55, 3: 0.50, 5: 0.73, 9: 0.75, 14: 0.74, 20: 0.80}
"""Values by ``n``: 3 and 14 are dominated, as params are 1,000 n."""


def write(folder: Path, texts: list[str], mode: Any = "max") -> SweepFolder:
    """A sweep's folder with one trial for each of ``VALUES``."""
    file = folder.parent / "space.yaml"
    file.write_text("n: {type: int, range: [1, 21]}\n")
    several = texts if len(texts) > 1 else []
    sweep = Sweep(str(file), SIZED, "random", metric="acc", mode=mode, objectives=several)
    create_folder(folder, sweep)
    held = SweepFolder(folder)
    begin = [{"n": n} for n in VALUES]
    with Search(
        held.space,
        "random",
        journal=folder / JOURNAL_FILE,
        objectives=texts,
        features=(lambda config: {"params": 1000 * config["n"]}) if several else None,
        begin=begin,
    ) as search:
        for trial in search.ask(len(VALUES)):
            n = trial.config["n"]
            search.tell(trial, {"acc": VALUES[n]}, metrics={"latency_ms": 20.0 + 10 * n})
        extra = search.ask(4)
        for trial in extra:
            search.tell(trial, error="crashed")
        search.ask()
    return SweepFolder(folder)


@pytest.fixture
def sweep(tmp_path: Path) -> SweepFolder:
    return write(tmp_path / "sweep", ["acc max", "params min"])


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words))


@pytest.mark.parametrize(
    ("way", "n"),
    [
        ("params<=2e6", 20),
        ("params <= 5000", 5),
        ("parameters<9000, latency_ms<=50", 2),
        ("knee", 5),
        ("mnasnet:latency_ms=80", 20),
        ("mnasnet:params=1000", 5),
    ],
)
def test_ways_of_choosing(sweep: SweepFolder, way: str, n: int) -> None:
    assert pick(sweep, way).config["n"] == n


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("params<=10", "no trial is inside 'params<=10'; trial 6: params <= 10 must hold, but got"),
        ("energy<=10", "no number 'energy'; known: params"),
        ("best", "--pick must be 'params<=2e6', 'knee' or 'mnasnet:latency_ms=80', got 'best'"),
        ("mnasnet:latency_ms=soon", "a target above 0 such as latency_ms=80, got 'soon'"),
        ("mnasnet:energy=3", "no trial has a number 'energy' above 0; known: params"),
    ],
)
def test_what_cannot_be_chosen_is_said(sweep: SweepFolder, way: str, words: str) -> None:
    with pytest.raises(SweepError, match=words):
        pick(sweep, way)


def test_one_objective_has_limits_but_no_knee(tmp_path: Path) -> None:
    single = write(tmp_path / "sweep", ["acc max"])
    assert pick(single, "params<=5000").config["n"] == 5  # from the trainer's summary
    with pytest.raises(SweepError, match="needs several objectives"):
        pick(single, "knee")
    assert "on_front" not in single.to_dataframe().columns
    shown = run("best", str(single.path)).output
    assert shown.startswith("best: trial 6")
    assert "front" not in run("status", str(single.path)).output


def test_the_front_is_shown_as_a_table(sweep: SweepFolder) -> None:
    shown = run("best", str(sweep.path)).output
    assert shown.startswith("front: 5 trials, hypervolume ")
    rows = [line.split() for line in shown.splitlines()[2:7]]
    assert [row[0] for row in rows] == ["6", "4", "3", "1", "0"]
    assert rows[0][1:3] == ["0.8", "20,000"]
    assert "acc max" in shown.splitlines()[1]
    one = run("best", str(sweep.path), "--pick", "knee").output
    assert one.startswith("best: trial 3")


def test_json_has_the_front(sweep: SweepFolder) -> None:
    found = json.loads(run("best", str(sweep.path), "--json").output)
    assert found["trial"] == 6
    assert [one["config"]["n"] for one in found["front"]] == [20, 9, 5, 2, 1]
    assert found["front"][1] == {"trial": 4, "acc": 0.75, "params": 9000.0, "config": {"n": 9}}
    picked = json.loads(run("best", str(sweep.path), "--json", "--pick", "params<3000").output)
    assert picked["trial"] == 1


def test_rows_say_who_is_on_the_front(sweep: SweepFolder) -> None:
    text = run("export", str(sweep.path)).output
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["on_front"] for row in rows[:7]] == [
        "True", "True", "False", "True", "True", "False", "True",
    ]  # fmt: skip
    assert {row["on_front"] for row in rows[7:]} == {"False"}
    assert sweep.to_dataframe()["on_front"].sum() == 5
    assert [trial.config["n"] for trial in sweep.front] == [20, 9, 5, 2, 1]


def test_status_has_the_size_and_the_hypervolume(sweep: SweepFolder) -> None:
    found = json.loads(run("status", str(sweep.path), "--json").output)
    assert (found["objectives"], found["front"]) == ("acc max, params min", 5)
    assert found["hypervolume"] == pytest.approx(sweep.history.hypervolume, rel=1e-5)
    assert "hypervolume" in run("status", str(sweep.path)).output


def test_values_by_another_criterion_do_not_mix_with_a_choice(sweep: SweepFolder) -> None:
    done = run("best", str(sweep.path), "--pick", "knee", "--by", "observed")
    assert done.exit_code == 2
    assert "do not go together" in done.output
