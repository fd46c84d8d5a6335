"""Sweep as an object, and its tables."""

from __future__ import annotations

import builtins
import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import nasbo
from nasbo.cli import cli
from nasbo.errors import NasboError, SweepError
from nasbo.methods.addtree import AddTree
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import create_folder
from nasbo.sweeps.rows import measurement_rows, to_csv, trial_rows
from nasbo.sweeps.settings import Sweep, make_sweep


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Nine trials: five finished, one repeated, one crashed, one stopped, one twin, one running."""
    folder = tmp_path / "run"
    create_folder(folder, Sweep("svm", "own:train", trials=12, method="random", metric="loss"))
    with Search("svm", method="random", journal=folder / JOURNAL_FILE) as search:
        trials = search.ask(9)
        for trial in trials[:5]:
            for step in (1, 2):
                metrics = {"loss": 1.0 / step, "nasbo_value": 1.0}
                search.report(trial, step, 1.0 / step, metrics)
            search.tell(trial, float(trial.id), metrics={"loss": 0.5, "size": 7}, step=2)
        search.tell(5, error="crashed", message="boom")
        search.tell(6, -1.0, error="stopped", step=1)
        search.answer(7, search.history.trial(2))
        (again,) = search.repeat(search.history.trial(0))
        search.start(again)
        search.tell(again, 3.0)
    return folder


def test_rows_of_trials(folder: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(trial_rows(nasbo.load_sweep(folder).history)))))
    assert [row["trial"] for row in rows] == [str(number) for number in range(10)]
    states = ["finished"] * 5 + ["crashed", "stopped", "finished", "running", "finished"]
    assert [row["state"] for row in rows] == states
    assert (rows[0]["value"], rows[0]["n_values"]) == ("1.5", "2"), "the mean with its repeat"
    assert (rows[9]["repeat_of"], rows[9]["source"], rows[9]["value"]) == ("0", "repeat", "3.0")
    assert (rows[5]["message"], rows[5]["value"]) == ("boom", "")
    assert (rows[6]["value"], rows[6]["n_values"]) == ("-1.0", "0"), "stopped early"
    assert (rows[7]["twin"], rows[7]["value"]) == ("2", "2.0")
    assert (rows[3]["metrics.loss"], rows[3]["metrics.size"]) == ("0.5", "7")
    assert not [name for name in rows[0] if "nasbo" in name]
    assert len(json.loads(rows[3]["seconds_by_attempt"])) == 1
    assert float(rows[3]["seconds"]) < 60


def test_rows_of_measurements(folder: Path) -> None:
    rows = measurement_rows(nasbo.load_sweep(folder).history)
    assert [(row["trial"], row["step"], row["value"]) for row in rows[:3]] == [
        (0, 1, 1.0),
        (0, 2, 0.5),
        (1, 1, 1.0),
    ]
    assert len(rows) == 10
    assert rows[0]["metrics"] == {"loss": 1.0}
    assert rows[0]["time"] > 1e9


def test_lists_are_json_in_csv(tmp_path: Path) -> None:
    create_folder(tmp_path / "run", make_sweep({"space": "nas_cifar10_conditional"}))
    journal = tmp_path / "run" / JOURNAL_FILE
    with Search("nas_cifar10_conditional", method="random", journal=journal) as search:
        (trial,) = search.ask(1)
        names = search.space.names
        (row,) = csv.DictReader(io.StringIO(to_csv(trial_rows(search.history), names)))
    lists = {name: value for name, value in trial.config.items() if isinstance(value, list)}
    assert lists
    for name, value in lists.items():
        assert json.loads(row[f"config.{name}"]) == value


def test_a_sweep_as_an_object(folder: Path) -> None:
    sweep = nasbo.load_sweep(folder)
    assert sweep.space.n_subspaces == 4
    assert (sweep.best.id, sweep.best.value) == (1, 1.0)
    assert (len(sweep.trials), sweep.budget, sweep.metric) == (9, 12, "loss")
    assert (sweep.state, sweep.is_running) == ("interrupted", False)
    assert sweep.trial_folder(3) == folder / "trials" / "00003"
    assert "random, interrupted, 8 of 12 trials, best loss 1" in repr(sweep)
    page = sweep._repr_html_()
    assert page.count("<tr>") == 1 + 6
    assert "<th>kernel</th>" in page
    with Search("svm", method="random", journal=folder / JOURNAL_FILE) as search:
        search.tell(8, 0.25)
        assert sweep.state == "running"
        assert sweep.best.id == 1
        assert sweep.refresh().best.id == 8


def test_the_method_of_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"space": "svm", "trainer": "own:train", "method": "addtree", "seed": 3}
    create_folder(
        tmp_path / "run", make_sweep({**settings, "method_options": {"kernel": "matern"}})
    )
    method = nasbo.load_sweep(tmp_path / "run").method
    assert isinstance(method, AddTree)
    assert (method.kernel, method.seed) == ("matern", 3)
    create_folder(tmp_path / "own", make_sweep({**settings, "method": "folder_method:Own"}))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    code = "from nasbo.methods.random import RandomSearch\nclass Own(RandomSearch): pass\n"
    (tmp_path / "folder_method.py").write_text(code)
    assert type(nasbo.load_sweep("own").method).__name__ == "Own"
    monkeypatch.chdir(tmp_path / "own")
    (tmp_path / "own" / "folder_method.py").write_text(code)
    with pytest.raises(SweepError, match="lies in the sweep's own folder"):
        _ = nasbo.load_sweep(tmp_path / "own").method


def test_data_frames(folder: Path) -> None:
    frame = nasbo.load_sweep(folder).to_dataframe()
    assert len(frame) == 10
    assert frame.loc[frame["state"] == "finished", "value"].min() == 1.0
    assert {"config.C", "config.gamma", "metrics.loss", "predicted"} <= set(frame.columns)
    measured = nasbo.load_sweep(folder).measurements_dataframe()
    assert list(measured.columns) == ["trial", "step", "time", "value", "metrics.loss"]
    assert measured.groupby("trial")["step"].max().tolist() == [2] * 5


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SweepError, match="holds no sweep"):
        nasbo.load_sweep(tmp_path / "nothing")
    create_folder(tmp_path / "new", Sweep("svm", "own:train"))
    new = nasbo.load_sweep(tmp_path / "new")
    with pytest.raises(NasboError, match="nothing has finished yet"):
        _ = new.best
    assert "no result" in repr(new)
    load = builtins.__import__

    def without_pandas(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'")
        return load(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(NasboError, match="pip install pandas"):
        new.to_dataframe()


def test_the_command_exports_both_tables(folder: Path) -> None:
    done = CliRunner().invoke(cli, ["export", str(folder), "--measurements"])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0] == "trial,step,time,value,metrics.loss"
    rows = json.loads(CliRunner().invoke(cli, ["export", str(folder), "--json"]).stdout)
    assert rows[3]["config"] == nasbo.load_sweep(folder).trials[3].config
