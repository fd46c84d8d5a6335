"""Sweeps as studies of Optuna."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import optuna
import pytest
from click.testing import CliRunner
from optuna.trial import TrialState

from nasbo.cli import cli
from nasbo.errors import SweepError
from nasbo.history import Ending
from nasbo.history.events import Ended
from nasbo.interchange import study as study_module
from nasbo.interchange.listing import listing_of
from nasbo.interchange.study import write_study
from nasbo.interchange.to_optuna import suggest_code
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import SweepFolder, create_folder
from nasbo.sweeps.settings import make_sweep
from tests.events import failed, finished, reported, started
from tests.report.sample import START, make_folder


def _read(path: Path) -> optuna.Study:
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))
    return optuna.load_study(study_name=None, storage=storage)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("runs") / "first", 20, "nas_cifar10_conditional")


def test_trials_are_those_of_the_sweep(folder: Path, tmp_path: Path) -> None:
    sweep = SweepFolder(folder)
    assert write_study(sweep, tmp_path / "study.log") == 20
    study = _read(tmp_path / "study.log")
    assert (study.study_name, study.direction) == ("first", optuna.study.StudyDirection.MAXIMIZE)
    assert study.metric_names == ["val_accuracy"]
    assert study.user_attrs["nasbo"]["method"] == "attnbo"
    assert study.best_value == sweep.best.value
    translation = listing_of(sweep.space)[1]
    for own, trial in zip(study.trials, sweep.trials, strict=True):
        assert own.number == own.user_attrs["number"] == trial.id
        assert translation.config(own.params) == trial.config
        assert {*own.params} == {*own.distributions}
        assert own.user_attrs["subspace"] == sweep.history.subspace(trial).id
        assert own.user_attrs["source"] == trial.source
        assert own.user_attrs["metrics.params"] == trial.metrics["params"]
        assert own.intermediate_values == dict(trial.curve)
        assert _seconds(own.datetime_start) == trial.started_at
        assert _seconds(own.datetime_complete) == trial.ended_at
        is_failed = trial.id % 9 == 8
        assert own.state == (TrialState.FAIL if is_failed else TrialState.COMPLETE)
        assert own.value == trial.value
        assert own.user_attrs.get("cause") == ("crashed" if is_failed else None)
    n_names = {len(one.params) for one in study.trials}
    assert len(n_names) > 1, "conditional parameters are only where they exist"


def _seconds(moment: datetime | None) -> float:
    assert moment is not None
    return moment.timestamp()


def _paused_sweep(folder: Path) -> Path:
    """One trial of each state, the last one waiting; 3 of 5 have ended."""
    create_folder(folder, make_sweep({"space": "svm", "trainer": "own:train", "trials": 5,
                                      "mode": "min", "metric": "loss"}))  # fmt: skip
    with Search("svm", "random", "min", journal=folder / JOURNAL_FILE, rungs=[2, 6]) as search:
        trials = search.open_round(6)
        for trial in trials[:5]:
            search.target(trial.id, 2 if trial.id == 3 else None)
            search.record(started(trial.id, time=START), reported(trial.id, 2, 0.5, time=START + 5))
        search.record(
            finished(0, 0.25, step=6, time=START + 9),
            failed(1, "oom", message="too large", time=START + 9),
            Ended(run=2, ending=Ending.STOPPED, value=0.5, step=2, time=START + 9),
            Ended(run=3, ending=Ending.PAUSED, value=0.5, step=2, time=START + 9),
        )
    return folder


def test_every_state(tmp_path: Path) -> None:
    sweep = SweepFolder(_paused_sweep(tmp_path / "run"))
    write_study(sweep, tmp_path / "study.log")
    study = _read(tmp_path / "study.log")
    states = [one.state.name for one in study.trials]
    assert states == ["COMPLETE", "FAIL", "PRUNED", "RUNNING", "RUNNING", "WAITING"]
    complete, failed_one, pruned, paused, running, waiting = study.trials
    assert complete.value == study.best_value == 0.25
    assert (failed_one.value, failed_one.user_attrs["message"]) == (None, "too large")
    assert (pruned.value, pruned.user_attrs["cause"]) == (0.5, "stopped")
    assert paused.user_attrs["state"] == "paused"
    assert paused.datetime_complete is None
    assert running.intermediate_values == {2: 0.5}
    assert waiting.datetime_start is None
    # A worker of Optuna that takes the waiting trial trains nasbo's config.
    found: dict[str, Any] = {}
    exec(suggest_code(sweep.space)[0], found)
    asked = study.ask()
    assert asked.number == 5
    assert found["suggest"](asked) == sweep.trials[5].config


def test_repeats_count_by_their_mean(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    create_folder(
        folder, make_sweep({"space": "svm", "trainer": "own:train", "trials": 2, "mode": "max"})
    )
    with Search("svm", "random", "max", journal=folder / JOURNAL_FILE) as search:
        first, second = search.ask(2)
        search.tell(first, 1.0)
        search.tell(second, 1.5)
        (again,) = search.repeat(search.history.trial(1))
        search.start(again)
        search.tell(again, 0.1)
        assert search.history.n_runs == 3
    write_study(SweepFolder(folder), tmp_path / "study.log")
    study = _read(tmp_path / "study.log")
    assert [one.value for one in study.trials] == [1.0, 0.8]
    assert study.trials[1].user_attrs["values"] == [1.5, 0.1]


def test_it_is_written_as_a_whole(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "study.log"
    write_study(SweepFolder(folder), path)
    before = path.read_bytes()

    def broken(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(study_module.os, "replace", broken)
        with pytest.raises(SweepError, match=r"study.log: cannot be written: .*No space left"):
            write_study(SweepFolder(folder), path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["study.log"]
    write_study(SweepFolder(folder), path)
    assert len(_read(path).trials) == 20
    with pytest.raises(SweepError, match=r"none/study.log: cannot be written"):
        write_study(SweepFolder(folder), tmp_path / "none" / "study.log")


def test_files_of_others_stay(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "study.log"
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))
    optuna.create_study(storage=storage, study_name="mine")
    before = path.read_bytes()
    with pytest.raises(SweepError, match=r"exists, and is no study that nasbo wrote"):
        write_study(SweepFolder(folder), path)
    assert path.read_bytes() == before
    for other in (folder / JOURNAL_FILE, tmp_path):
        with pytest.raises(SweepError, match=r"exists, and is no study that nasbo wrote"):
            write_study(SweepFolder(folder), other)


def test_on_the_command_line(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "study.log"
    done = CliRunner().invoke(cli, ["export", str(folder), "--optuna", str(path)])
    assert (done.exit_code, done.output.startswith(f"{path}: 20 trials")) == (0, True)
    assert len(_read(path).trials) == 20
    done = CliRunner().invoke(cli, ["export", str(folder), "--optuna", str(path), "--json"])
    assert (done.exit_code, "by itself" in done.output) == (2, True)
