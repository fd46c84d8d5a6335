"""Configs that a search begins with: first of all, once, as part of the design, and checked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from nasbo.cli import cli
from nasbo.errors import NasboError, SweepError
from nasbo.history import Run
from nasbo.search import Driver, Next, Schedule, Search
from nasbo.start import Display, plan_sweep, start_sweep
from nasbo.sweeps import load_sweep
from nasbo.sweeps.checks import check_same, prepare
from nasbo.sweeps.folder import create_folder
from nasbo.sweeps.forecast import round_sizes
from nasbo.sweeps.settings import make_sweep
from nasbo.tune import NasboSearch
from tests.tune.toy import simulation

A = {"x1": 0, "x2": 0, "x4": 0.25, "r8": 1}
B = {"x1": 0, "x2": 0, "x4": 0.75, "r8": 1}
C = {"x1": 1, "x3": 1, "x7": 0.5, "r9": 0}
QUIET = Console(quiet=True)
TRAINER = "tests.tune.toy:simulation"


def test_they_come_first_and_count_towards_the_design() -> None:
    search = Search("simulation", method="random", begin=[A, C])
    trials = search.ask(9)
    assert [trial.config for trial in trials[:2]] == [A, C]
    assert [trial.info.get("begin") for trial in trials] == [0, 1] + [None] * 7
    # Two in each of four subspaces: six are left of the design, and then the method chooses.
    assert [trial.source for trial in trials] == ["design"] * 8 + ["fallback"]
    counts = search.history.design_counts()
    assert set(counts.values()) == {2}


def test_more_than_a_subspace_needs_take_nothing_from_the_others() -> None:
    search = Search("simulation", method="random", begin=[A, B, {**A, "x4": 0.5}])
    search.ask(9)
    assert sorted(search.history.design_counts().values()) == [2, 2, 2, 3]


def test_a_search_that_goes_on_has_had_them(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    with Search("simulation", method="random", begin=[A, C], journal=file) as search:
        (first,) = search.ask(1)
        search.tell(first, simulation(first.config))
    with Search("simulation", method="random", begin=[A, C], journal=file) as search:
        assert search.n_returned == 1
        second, third = search.ask(2)
        assert (second.config, third.info.get("begin")) == (C, None)
        assert [trial.config for trial in search.trials[:2]] == [A, C]
    whole = Search("simulation", method="random", begin=[A, C]).ask(3)
    assert whole[2].config == third.config


def test_a_journal_without_trials_begins_with_them(tmp_path: Path) -> None:
    Search("simulation", method="random", journal=tmp_path / "run.jsonl").close()
    with Search("simulation", method="random", begin=[A], journal=tmp_path / "run.jsonl") as search:
        assert search.ask(1)[0].config == A


def test_the_design_does_not_wait_for_them() -> None:
    driver = Driver(Search("simulation", method="random", begin=[A]), Schedule(budget=12))
    started = [driver.next(slots=3) for _ in range(3)]
    assert [run.number for run in started if isinstance(run, Run)] == [0, 1, 2]
    assert [one.size for one in driver.search.history.rounds] == [1, 7]


def test_a_round_of_the_model_waits_for_them() -> None:
    halves = [{**A, "x4": x} for x in (0.1, 0.9)]
    space = {"x": {"type": "float", "range": [0, 1]}}
    configs = [{"x": one["x4"]} for one in halves]
    driver = Driver(Search(space, method="random", begin=configs), Schedule())
    first, second = (driver.next(slots=3) for _ in range(2))
    assert isinstance(first, Run)
    assert isinstance(second, Run)
    assert driver.next(slots=3) is Next.WAIT
    driver.on_end(first.number, 1.0)
    driver.on_end(second.number, 2.0)
    third = driver.next(slots=3)
    assert isinstance(third, Run)
    assert driver.search.history.trial(third.number).source != "design"


@pytest.mark.parametrize(
    ("configs", "words"),
    [
        ([A, {"x1": 0}], "begin: config 2: .r8. is missing"),
        ([A, {**C, "x7": 3}], "begin: config 2: .*x7"),
        ([A, C, dict(A)], "begin: config 3: is config 1 again"),
    ],
)
def test_what_does_not_belong_is_refused(configs: list[Any], words: str) -> None:
    with pytest.raises(NasboError, match=words):
        Search("simulation", begin=configs)
    with pytest.raises(NasboError, match=words):
        NasboSearch("simulation", metric="loss", mode="min", begin=configs)


def test_limits_hold_for_them_too() -> None:
    with pytest.raises(NasboError, match="begin: config 2: must keep to the limits"):
        Search("simulation", begin=[A, C], limits=lambda config: config["x1"] == 0)


def test_the_searcher_of_tune_runs_them_first() -> None:
    searcher = NasboSearch("simulation", metric="loss", mode="min", method="random", begin=[C, A])
    assert [searcher.suggest(name) for name in "ab"] == [C, A]
    assert searcher.suggest("c") is not None
    again = {"begin": [A], "points_to_evaluate": [A]}
    with pytest.raises(NasboError, match="give one of them"):
        NasboSearch("simulation", metric="loss", mode="min", **again)


# In sweeps


def written(folder: Path, begin: str, **settings: Any) -> str:
    file = folder / "sweep.yaml"
    named = {"trainer": TRAINER, "method": "random", **settings}
    lines = [f"{name}: {json.dumps(value)}" for name, value in named.items()]
    file.write_text("\n".join(["space: simulation", *lines, begin]))
    return str(file)


LISTED = f"begin:\n- {json.dumps(A)}\n- {json.dumps(C)}\n"


def test_a_sweep_file_lists_them(tmp_path: Path) -> None:
    sweep, _ = prepare(written(tmp_path, LISTED), {}, QUIET)
    assert sweep.begin == [A, C]


@pytest.mark.parametrize("name", ["first.yaml", "first.json"])
def test_a_file_of_its_own(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).write_text(json.dumps([C, A], indent=1))
    (tmp_path / "one.yaml").write_text(json.dumps(A))
    sweep, _ = prepare(written(tmp_path, f"begin: {name}"), {}, QUIET)  # relative to the sweep file
    assert sweep.begin == [C, A]
    sweep, _ = prepare(written(tmp_path, LISTED), {"begin": str(tmp_path / "one.yaml")}, QUIET)
    assert sweep.begin == [A]
    monkeypatch.chdir(tmp_path)
    given = {"begin": "one.yaml", "trainer": TRAINER}
    sweep, _ = prepare("simulation", given, QUIET)
    assert sweep.begin == [A]


def test_the_settings_of_a_sweep_serve_as_a_file(tmp_path: Path) -> None:
    sweep, _ = prepare(written(tmp_path, LISTED), {}, QUIET)
    create_folder(tmp_path / "first", sweep)
    given = {"begin": str(tmp_path / "first" / "sweep.yaml"), "trainer": TRAINER}
    again, _ = prepare("simulation", given, QUIET)
    assert again.begin == [A, C]


@pytest.mark.parametrize(
    ("begin", "words"),
    [
        (f"begin:\n- {json.dumps(A)}\n- {{x1: 0}}\n", r"sweep.yaml:6: config 2: .r8. is missing"),
        ("begin: [1]", r"begin must be a list of configs, each a mapping, or a file .*got \[1\]"),
        ("begin: nowhere.yaml", r"nowhere.yaml: cannot be read"),
        ("begin: bad.json", r"bad.json:3: config 2: .x1. is missing"),
        ("begin: shape.yaml", r"shape.yaml:1: must be a list of configs, each a mapping of all"),
    ],
)  # fmt: skip
def test_errors_have_a_place(begin: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(f'[\n{json.dumps(A)},\n{{"x9": 1}}]')
    (tmp_path / "shape.yaml").write_text("- 1\n- 2\n")
    with pytest.raises(SweepError, match=words):
        prepare(written(tmp_path, begin), {}, QUIET)


def test_there_must_be_as_many_trials(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=r"trials >= 2 must hold, the configs to begin with"):
        prepare(written(tmp_path, LISTED, trials=1), {}, QUIET)


def test_constraints_and_the_trainer_are_asked_before_anything_begins(tmp_path: Path) -> None:
    sized = tmp_path / "sized.yaml"
    sized.write_text("begin: [{n: 3}]\nspace: space.yaml\ntrainer: tests.tune.sized:train\n")
    (tmp_path / "space.yaml").write_text("n: {type: int, range: [1...10]}\n")
    told = r"sized.yaml:1: config 1: params <= 2000 must hold, but got 3000"
    with pytest.raises(SweepError, match=told):
        prepare(str(sized), {"constraints": ["params <= 2000"]}, QUIET)
    checked = tmp_path / "checked.yaml"
    checked.write_text("begin: [{n: 3}]\nspace: space.yaml\ntrainer: tests.test_begin:refusing\n")
    with pytest.raises(SweepError, match=r"config 1: tests.test_begin:refusing refuses it: no"):
        prepare(str(checked), {}, QUIET)


def refusing(config: dict[str, Any]) -> float:
    return 0.0


def check(config: dict[str, Any]) -> None:
    """Beside ``refusing``: a trainer that builds nothing of three."""
    if config.get("n") == 3:
        raise ValueError("no")


def test_a_dry_run_names_them(tmp_path: Path) -> None:
    console = Console(record=True, width=200)
    assert plan_sweep(written(tmp_path, LISTED), {}, console) == 0
    text = console.export_text()
    assert "begins with 2 configs:" in text
    assert re.search(r"subspace 0: x1=0, r8=1, x2=0, x4=0.25", text)
    sweep, space = prepare(written(tmp_path, LISTED, trials=12), {}, QUIET)
    assert round_sizes(sweep, space, slots=1) == [8, 4]


def test_a_folder_is_not_continued_with_others(tmp_path: Path) -> None:
    sweep, space = prepare(written(tmp_path, LISTED), {}, QUIET)
    create_folder(tmp_path / "s", sweep)
    check_same(tmp_path / "s", sweep, space)
    other, _ = prepare(written(tmp_path, "begin: []"), {}, QUIET)
    with pytest.raises(SweepError, match="holds a sweep with begin = "):
        check_same(tmp_path / "s", other, space)
    assert load_sweep(tmp_path / "s").settings.begin == [A, C]


def test_the_flag_is_there() -> None:
    assert "--begin FILE" in CliRunner().invoke(cli, ["run", "--help"]).output
    with pytest.raises(SweepError, match="begin must be a list of configs"):
        make_sweep({"space": "svm", "trainer": "own:train", "begin": 3})


@pytest.mark.ray
def test_a_sweep_runs_them_once_also_behind_a_warm_start(tmp_path: Path) -> None:
    display = Display(QUIET)
    given = {"trials": 3, "address": "local", "slots": 1, "cpus_per_trial": 0.5}
    past = tmp_path / "past"
    assert start_sweep(written(tmp_path, LISTED), past, given, display) == 0
    assert [trial.config for trial in load_sweep(past).trials[:2]] == [A, C]
    begin = f"begin:\n- {json.dumps(B)}\n"
    file = written(tmp_path, begin, warm_start=str(past))
    assert start_sweep(file, tmp_path / "next", given, display) == 0
    trials = load_sweep(tmp_path / "next").trials
    assert sum(trial.source == "observed" for trial in trials) == 3
    own = [trial for trial in trials if trial.source != "observed"]
    assert [trial.config == B for trial in own] == [True, False, False]
    done = CliRunner().invoke(
        cli, ["resume", str(tmp_path / "next"), "--trials", "4", "--address", "local"]
    )
    assert done.exit_code == 0, done.output
    configs = [trial.config for trial in load_sweep(tmp_path / "next").trials]
    assert configs.count(B) == 1
