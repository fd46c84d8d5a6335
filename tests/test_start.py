"""Start of a run: foreign folders, finished sweeps, messages."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from rich.console import Console

from nasbo.cli import cli
from nasbo.errors import NasboError, SweepError
from nasbo.history.events import Budget
from nasbo.report.study import open_study
from nasbo.search import Search
from nasbo.start import (
    PLOT_FILE,
    Display,
    _conclude,
    exit_code,
    resume_sweep,
    show_best,
    start_or_resume,
    start_sweep,
)
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import SweepFolder, create_folder
from nasbo.sweeps.parsing import parse_duration
from nasbo.sweeps.settings import PLACEMENT, Sweep
from nasbo.sweeps.spending import budget_text
from tests.rung_search import make_rung_folder

DISPLAY = Display(Console(quiet=True))
Runs = list[tuple[Sweep, int | None]]


def finished(folder: Path, trainer: str = "tests.tune.toy:simulation", n_trials: int = 9) -> Path:
    """A sweep of which nine trials have ended."""
    from tests.tune.toy import simulation

    sweep = Sweep(space="simulation", trainer=trainer, method="random", trials=n_trials)
    create_folder(folder, sweep)
    journal = folder / JOURNAL_FILE
    with Search("simulation", "random", journal=journal, notes=sweep.notes()) as search:
        for trial in search.ask(9):
            search.tell(trial, simulation(trial.config))
    return folder


def test_a_finished_sweep_says_so_and_shows_its_best(tmp_path: Path) -> None:
    folder = finished(tmp_path / "s")
    console = Console(record=True, width=120)
    assert resume_sweep(folder, None, Display(console)) == 0
    text = console.export_text()
    assert "has finished, 9 of 9 trials have ended" in text
    assert "best: trial" in text
    assert (folder / PLOT_FILE).read_bytes().startswith(b"\x89PNG")


def crashed(folder: Path, n_crashed: int = 9) -> Path:
    """A sweep of nine trials in which no trial has a value."""
    sweep = Sweep(
        space="simulation", trainer="tests.tune.toy:simulation", method="random", trials=9
    )
    create_folder(folder, sweep)
    journal = folder / JOURNAL_FILE
    with Search("simulation", "random", journal=journal, notes=sweep.notes()) as search:
        for trial in search.ask(9)[:n_crashed]:
            search.tell(trial, error="crashed", message="ValueError: a bug")
    return folder


def test_a_sweep_without_a_value_names_the_traceback(tmp_path: Path) -> None:
    folder = crashed(tmp_path / "s")
    console = Console(record=True, width=60)
    assert resume_sweep(folder, None, Display(console)) == 1
    text = console.export_text()
    assert f"no trial has a value: 9 crashed; traceback: {folder}/trials/00000/error.txt" in text
    done = CliRunner().invoke(cli, ["best", str(folder)])
    assert (done.exit_code, "no trial has a value: 9 crashed" in done.stderr) == (2, True)
    done = CliRunner().invoke(cli, ["report", str(folder)])
    assert (done.exit_code, "no trial has a value: 9 crashed" in done.stderr) == (0, True)
    with pytest.raises(NasboError, match="no trial has a value yet: 2 crashed, 7 open"):
        _ = SweepFolder(crashed(tmp_path / "t", 2)).best


def test_options_that_nobody_checks_are_said_before_a_run(tmp_path: Path, runs: Runs) -> None:
    console = Console(record=True, width=200)
    file = sweep_file(tmp_path, trainer_options={"epoch": 3})
    assert start_sweep(file, tmp_path / "s", {}, Display(console)) == 0
    assert "tests.tune.toy:simulation, not checked by it: epoch=3" in console.export_text()
    assert len(runs) == 1


def test_a_plot_without_room_is_said_and_costs_nothing_else(tmp_path: Path) -> None:
    folder = finished(tmp_path / "s")
    (folder / PLOT_FILE).symlink_to("/dev/full")
    console = Console(record=True, width=120)
    assert resume_sweep(folder, None, Display(console)) == 0
    text = console.export_text()
    assert "plot:        none, [Errno 28] No space left on device" in text
    assert "more trials: nasbo resume" in text


def test_fewer_trials_than_there_are_is_refused(tmp_path: Path) -> None:
    folder = finished(tmp_path / "s")
    with pytest.raises(SweepError, match="--trials must be at least 9"):
        resume_sweep(folder, 5, Display(Console()))


def test_a_method_or_a_warm_start_that_cannot_be_leaves_no_folder(tmp_path: Path) -> None:
    given = {"trainer": "tests.tune.toy:simulation", "warm_start": str(tmp_path / "nothing")}
    with pytest.raises(NasboError, match="unknown method 'nope'"):
        start_sweep("simulation", tmp_path / "s", {**given, "method": "nope"}, DISPLAY)
    with pytest.raises(SweepError, match="nothing' holds no sweep"):
        start_sweep("simulation", tmp_path / "s", given, DISPLAY)
    assert not (tmp_path / "s").exists()


def test_continuing_takes_the_same_settings_only(tmp_path: Path) -> None:
    folder = finished(tmp_path / "s")
    given = {"trainer": "tests.tune.toy:simulation", "method": "random", "trials": 9}

    def again(space: str = "simulation", **changes: Any) -> int:
        return start_or_resume(space, folder, {**given, **changes}, DISPLAY)

    assert again() == 0
    assert again(address="auto", trials=9) == 0
    with pytest.raises(SweepError, match="method = 'random', not 'attnbo': name another --dir"):
        again(method="attnbo")
    with pytest.raises(SweepError, match="seed = 0, not 2"):
        again(seed=2)
    with pytest.raises(SweepError, match="a sweep over another space"):
        again("svm")
    with pytest.raises(NasboError, match="does_not_exist"):
        again("does_not_exist.yaml")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """The settings and the numbers of trials of sweeps that would run."""
    seen: Runs = []

    def run(held: SweepFolder, sweep: Sweep, n_trials: int | None, display: Any) -> int:
        seen.append((sweep, n_trials))
        return 0

    monkeypatch.setattr("nasbo.start.run_in_words", run)
    return seen


def sweep_file(folder: Path, **settings: Any) -> str:
    known = {"space": "simulation", "trainer": "tests.tune.toy:simulation", "method": "random"}
    file = folder / "sweep.yaml"
    file.write_text(yaml.safe_dump({**known, **settings}))
    return str(file)


@pytest.mark.parametrize("is_in_file", [True, False])
def test_more_trials_extend_a_sweep_and_fewer_take_none_away(
    tmp_path: Path, runs: Runs, is_in_file: bool
) -> None:
    folder = finished(tmp_path / "s")
    console = Console(record=True, width=200)

    def again(n_trials: int) -> int:
        file = sweep_file(tmp_path, **{"trials": n_trials} if is_in_file else {})
        given = {} if is_in_file else {"trials": n_trials}
        return start_or_resume(file, folder, given, Display(console))

    assert again(12) == 0
    assert [n_trials for _, n_trials in runs] == [12]
    with Search("simulation", "random", journal=folder / JOURNAL_FILE) as search:
        search.record(Budget(trials=20))  # as `nasbo resume --trials 20` does
    assert again(12) == again(5) == again(20) == again(21) == 0
    assert [n_trials for _, n_trials in runs] == [12, 20, 20, 20, 21]
    assert "continues to its 20 trials; trials = 5 removes none" in console.export_text()


def test_settings_without_a_number_of_trials_leave_that_of_the_folder(
    tmp_path: Path, runs: Runs
) -> None:
    folder = finished(tmp_path / "s")
    assert start_or_resume(sweep_file(tmp_path), folder, {}, DISPLAY) == 0
    assert not runs, "9 of 9 trials have ended, whatever the default is"


def test_the_address_of_a_launch_is_for_that_run_alone(tmp_path: Path, runs: Runs) -> None:
    given = {"address": "10.0.0.7:6379"}
    plain, named = sweep_file(tmp_path), tmp_path / "named"
    assert start_or_resume(plain, tmp_path / "a", given, DISPLAY) == 0
    assert start_sweep(plain, tmp_path / "b", given, DISPLAY) == 0
    named.mkdir()
    lasting = sweep_file(named, address="head:6379")
    assert start_or_resume(lasting, tmp_path / "c", given, DISPLAY) == 0
    assert [sweep.address for sweep, _ in runs] == ["10.0.0.7:6379"] * 3
    held = [SweepFolder(tmp_path / name).settings.address for name in "abc"]
    assert held == [None, "10.0.0.7:6379", "head:6379"]


def test_a_sweep_moves_between_a_cluster_and_this_machine(tmp_path: Path, runs: Runs) -> None:
    folder = tmp_path / "s"
    cluster: dict[str, Any] = {
        "slots": 64, "cpus_per_trial": 8, "gpus_per_trial": 1, "resources": {"spot": 0.001},
        "time_limit_s": 3600, "report_timeout_s": 60.0, "max_failures": 5,
        "max_failures_in_a_row": 50, "keep_checkpoints": 9, "keep_paused": 5,
        "callbacks": ["tests.tune.calling:Notes"],
    }  # fmt: skip
    assert set(cluster) == set(PLACEMENT)
    address = {"address": "10.0.0.7:6379"}
    assert start_or_resume(sweep_file(tmp_path, **cluster), folder, address, DISPLAY) == 0
    assert start_or_resume(sweep_file(tmp_path), folder, {"slots": "2"}, DISPLAY) == 0
    here = runs[-1][0]
    assert {name: getattr(here, name) for name in PLACEMENT} == {
        "slots": 2, "cpus_per_trial": 1, "gpus_per_trial": 0, "resources": {},
        "time_limit_s": None, "report_timeout_s": None, "max_failures": 2,
        "max_failures_in_a_row": 20, "keep_checkpoints": 3, "keep_paused": 64,
        "callbacks": [],
    }  # fmt: skip
    assert here.address is None
    held = SweepFolder(folder).settings
    assert {name: getattr(held, name) for name in PLACEMENT} == cluster, "of that run alone"


def test_resume_takes_machines_of_its_own(tmp_path: Path, runs: Runs) -> None:
    file = sweep_file(tmp_path, slots=64, gpus_per_trial=1, time_limit_s=3600)
    start_sweep(file, tmp_path / "s", {"address": "10.0.0.7:6379"}, DISPLAY)
    words = ["--address", "local", "--slots", "2", "--cpus-per-trial", "0.5"]
    words += ["--gpus-per-trial", "0", "--time-limit", "2m"]
    done = CliRunner().invoke(cli, ["resume", str(tmp_path / "s"), *words])
    assert done.exit_code == 0, done.output
    here, there = runs[-1][0], runs[0][0]
    changed = {
        field.name: getattr(here, field.name)
        for field in fields(here)
        if getattr(here, field.name) != getattr(there, field.name)
    }
    assert changed == {
        "address": "local", "slots": 2, "cpus_per_trial": 0.5, "gpus_per_trial": 0,
        "time_limit_s": 120,
    }  # fmt: skip
    done = CliRunner().invoke(cli, ["resume", str(tmp_path / "s"), "--slots", "0"])
    assert (done.exit_code, "slots must be a number >= 1" in done.output) == (2, True)


def test_a_foreign_folder_brings_no_code_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = finished(tmp_path / "s", "brought_along:train")
    (folder / "brought_along.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SweepError, match="names the trainer brought_along:train: resume in"):
        resume_sweep(folder, 12, Display(Console()))
    show_best(SweepFolder(folder), Console())
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("trainer", "start"), [("s.brought:train", "."), ("s.inner.brought:train", "."),
                           ("brought:train", "s")]
)  # fmt: skip
def test_a_foreign_folder_in_sight_brings_no_code_of_its_own(
    trainer: str, start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every folder in the working directory could be imported as a package."""
    folder = finished(tmp_path / "s", trainer)
    code = f"open({str(tmp_path / 'ran')!r}, 'w')\n\ndef train(config): return 0.0\n"
    (folder / "inner").mkdir()
    for file in ("brought.py", "inner/__init__.py", "inner/brought.py"):
        (folder / file).write_text(code)
    monkeypatch.chdir(tmp_path / start)
    monkeypatch.syspath_prepend(str(tmp_path / start))
    with pytest.raises(SweepError, match="lies in the sweep's own folder"):
        resume_sweep(folder, 12, DISPLAY)
    show_best(SweepFolder(folder), DISPLAY.console)
    assert open_study(folder).trainer is None
    assert not (tmp_path / "ran").exists()


def test_a_sweep_is_not_begun_where_it_could_not_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "near_trainer.py").write_text("def train(config): return 0.0\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SweepError, match="near_trainer:train lies in the sweep's own folder"):
        start_sweep("simulation", tmp_path, {"trainer": "near_trainer:train"}, DISPLAY)


def test_a_smaller_total_that_is_reached_is_remembered(tmp_path: Path) -> None:
    folder = finished(tmp_path / "s", n_trials=20)
    held = SweepFolder(folder)
    assert held.state == "interrupted"
    assert resume_sweep(folder, 9, DISPLAY) == 0
    assert (held.refresh().state, held.budget) == ("finished", 9)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("1.5m", 90), ("2h", 7200), ("7", 7)])
def test_times(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


def test_a_finished_sweep_with_rungs_counts_trainings_worth(tmp_path: Path) -> None:
    trainer = "tests.tune.toy:simulation"
    folder = make_rung_folder(tmp_path / "s", 8, space="simulation", trainer=trainer)
    console = Console(record=True, width=400)
    assert resume_sweep(folder, None, Display(console)) == 0
    history = SweepFolder(folder).history
    assert history.n_suggested > 8, "more configs than the budget has trainings"
    assert f"has finished, {budget_text(history, 8)}" in console.export_text()
    with pytest.raises(SweepError, match="must be at least 8, the trainings' worth so far, got 7"):
        resume_sweep(folder, 7, Display(Console()))


def test_a_sweep_without_a_full_training_has_a_result(tmp_path: Path) -> None:
    trainer = "tests.tune.toy:simulation"
    folder = make_rung_folder(tmp_path / "s", 8, n=6, space="simulation", trainer=trainer)
    held, console = SweepFolder(folder), Console(record=True, width=120)
    assert held.state == "interrupted"
    _conclude(held, held.history, console)
    text = console.export_text()
    assert "no trial has been trained in full; the best of those trained furthest:" in text
    assert re.search(r"value [0-9.]+ at step \d+ of 18", text)
    assert exit_code("finished", held.history) == 0
    assert exit_code("finished", Search("svm", method="random").history) == 1
