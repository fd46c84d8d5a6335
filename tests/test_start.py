"""What stands around a run: folders from elsewhere, sweeps that are done, words for the reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from nasbo.errors import NasboError, SweepError
from nasbo.report.study import open_study
from nasbo.search import Search
from nasbo.start import (
    PLOT_FILE,
    Display,
    parse_duration,
    resume_sweep,
    show_best,
    start_or_resume,
    start_sweep,
)
from nasbo.sweep import JOURNAL_FILE, Sweep, create_folder, status

DISPLAY = Display(Console(quiet=True))


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
    with pytest.raises(SweepError, match="nothing holds no sweep"):
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
    with pytest.raises(SweepError, match="cpus_per_trial = 1, not 2"):
        again(cpus_per_trial=2)
    with pytest.raises(SweepError, match="a sweep over another space"):
        again("svm")
    with pytest.raises(NasboError, match="does_not_exist"):
        again("does_not_exist.yaml")


def test_a_foreign_folder_brings_no_code_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = finished(tmp_path / "s", "brought_along:train")
    (folder / "brought_along.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SweepError, match="names the trainer brought_along:train: resume where"):
        resume_sweep(folder, 12, Display(Console()))
    show_best(folder, Console())
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("trainer", "place"), [("s.brought:train", "."), ("s.inner.brought:train", "."),
                           ("brought:train", "s")]
)  # fmt: skip
def test_a_foreign_folder_in_sight_brings_no_code_of_its_own(
    trainer: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every folder in the working directory could be imported as a package."""
    folder = finished(tmp_path / "s", trainer)
    code = f"open({str(tmp_path / 'ran')!r}, 'w')\n\ndef train(config): return 0.0\n"
    (folder / "inner").mkdir()
    for file in ("brought.py", "inner/__init__.py", "inner/brought.py"):
        (folder / file).write_text(code)
    monkeypatch.chdir(tmp_path / place)
    monkeypatch.syspath_prepend(str(tmp_path / place))
    with pytest.raises(SweepError, match="lies in the sweep's own folder"):
        resume_sweep(folder, 12, DISPLAY)
    show_best(folder, DISPLAY.console)
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
    assert status(folder)["state"] == "interrupted"
    assert resume_sweep(folder, 9, DISPLAY) == 0
    assert (status(folder)["state"], status(folder)["n_trials"]) == ("finished", 9)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("1.5m", 90), ("2h", 7200), ("7", 7)])
def test_times(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds
