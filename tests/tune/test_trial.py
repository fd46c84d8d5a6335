"""One trial as a worker runs it, without a cluster: its environment and its reports."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nasbo.space import load_space
from nasbo.sweeps.folder import ERROR_FILE, create_folder
from nasbo.sweeps.settings import Sweep
from nasbo.trainer import DATA, load_trainer
from nasbo.tune import trial
from nasbo.tune.log import LOG_FILE, printed_to
from nasbo.tune.preparation import PreparationError, prepare_node
from nasbo.tune.results import STEP
from nasbo.tune.sweep_search import SweepSearch
from nasbo.tune.trial import CAUSE, MESSAGE, VALUE, Stretch, TrialTask, run_trial

pytestmark = [pytest.mark.ray]
TRAINER = "tests.tune.dataless"


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Reports of a trial to Tune; the worker has no GPU."""
    found: list[dict[str, Any]] = []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # a trial sets it: this restores it
    context = SimpleNamespace(get_node_id=lambda: "node")
    monkeypatch.setattr(trial.ray, "get_runtime_context", lambda: context)
    monkeypatch.setattr(trial.ray, "get_gpu_ids", list)
    monkeypatch.setattr(trial.tune, "report", found.append)
    return found


def run_one(folder: Path, function: str, **options: Any) -> None:
    sweep = Sweep("simulation", f"{TRAINER}:{function}", trainer_options=options)
    task = TrialTask(str(folder), sweep)
    run_trial({"trial": 0, "config": {}, "n_out_of_memory": 0, "step": 0, "until": None}, task)


@pytest.mark.parametrize(("granted", "shown"), [([], ""), ([1], "0,1")])
def test_a_trial_sees_no_gpu_but_its_own(
    tmp_path: Path,
    reports: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    granted: list[int],
    shown: str,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setattr(trial.ray, "get_gpu_ids", lambda: granted)
    run_one(tmp_path, "count_gpus")
    assert os.environ["CUDA_VISIBLE_DEVICES"] == shown
    assert [report[VALUE] for report in reports] == [len(shown.replace(",", ""))]


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        ("train", {"is_missing": True}, "no pictures in /nowhere"),
        ("train_without_data", {}, "a picture is broken"),
    ],
)
def test_bad_data_have_a_cause_of_their_own(
    tmp_path: Path,
    reports: list[dict[str, Any]],
    function: str,
    options: dict[str, Any],
    words: str,
) -> None:
    run_one(tmp_path, function, **options)
    assert [report[CAUSE] for report in reports] == [DATA]
    assert words in reports[0][MESSAGE]


@pytest.mark.parametrize(
    ("metric", "stretch", "causes", "steps"),
    [
        ("loss", Stretch(), [None] * 4, [1, 2, 3, 4]),
        ("loss", Stretch(0, 2), [None, None, "paused"], [1, 2, 2]),
        ("loss", Stretch(2, 3), [None, "paused"], [3, 3]),
        ("test", Stretch(0, 1), [None, "paused"], [1, 1]),
    ],
)
def test_a_trial_pauses_at_its_step(
    tmp_path: Path,
    reports: list[dict[str, Any]],
    metric: str,
    stretch: Stretch,
    causes: list[str | None],
    steps: list[int],
) -> None:
    sweep = Sweep("simulation", "tests.tune.listening:train", metric=metric)
    task = TrialTask(str(tmp_path), sweep, is_metric_late=metric == "test")
    config = {"trial": 0, "config": {"x": 0.5}, "n_out_of_memory": 0, **asdict(stretch)}
    run_trial(config, task)
    assert [report.get(CAUSE) for report in reports] == causes
    assert [report[STEP] for report in reports] == steps


def run_rescued(folder: Path, function: str) -> None:
    task = TrialTask(str(folder), Sweep("simulation", f"tests.tune.rescued:{function}"))
    config = {"trial": 0, "config": {"x": 0.0}, "n_out_of_memory": 0, **asdict(Stretch(3))}
    run_trial(config, task)


def test_a_complete_checkpoint_whose_value_is_lost_is_trained_once_more(
    tmp_path: Path, reports: list[dict[str, Any]]
) -> None:
    folder = trial.trial_folder(tmp_path, 0)
    folder.mkdir(parents=True)
    for name, text in {"checkpoint.txt": "3", "killed.txt": "", ERROR_FILE: "an earlier"}.items():
        (folder / name).write_text(text)
    run_rescued(tmp_path, "train")
    assert [report[STEP] for report in reports] == [1, 2, 3]
    assert not any(CAUSE in report for report in reports)
    assert not (folder / ERROR_FILE).exists(), "this attempt has not crashed"
    reports.clear()
    run_rescued(tmp_path, "silent")
    assert [report[CAUSE] for report in reports] == ["no result"], "twice is enough"
    assert "neither reported nor returned" in (folder / ERROR_FILE).read_text()


def test_what_a_trainer_prints_is_in_the_log_of_the_trial(
    tmp_path: Path, reports: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        run_rescued(tmp_path, "talkative")
    log = trial.trial_folder(tmp_path, 0) / LOG_FILE
    text = log.read_text()
    assert text.count("a word\n") == text.count("100 %") == 2, "attempts are appended"
    print("the worker's own")
    assert log.read_text() == text
    assert "a word" not in capsys.readouterr().out
    log.unlink()
    run_rescued(tmp_path, "quiet")
    assert not log.exists()


def test_a_trial_that_the_sweep_breaks_off_has_not_crashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reports: list[dict[str, Any]]
) -> None:
    def end(result: dict[str, Any]) -> None:
        reports.append(result)
        raise SystemExit(0)  # as Tune does

    monkeypatch.setattr(trial.tune, "report", end)
    with pytest.raises(SystemExit) as ended:
        run_rescued(tmp_path, "train")
    assert ended.value.code == 0
    assert [report[STEP] for report in reports] == [1]
    assert not (trial.trial_folder(tmp_path, 0) / ERROR_FILE).exists()


def test_a_failed_preparation_is_tried_again_by_the_next_trial() -> None:
    trainer = load_trainer(f"{TRAINER}:train")
    for _ in range(2):
        with pytest.raises(PreparationError, match=r"dataless:train on .*: OSError: no pictures"):
            prepare_node(trainer, {"is_missing": True})


def test_bad_data_end_the_sweep_and_leave_its_trials_open(tmp_path: Path) -> None:
    sweep = Sweep("simulation", f"{TRAINER}:train", trials=9, method="random", slots=2)
    create_folder(tmp_path, sweep)
    trainer = load_trainer(sweep.trainer)
    searcher = SweepSearch(sweep, load_space("simulation"), tmp_path, trainer)
    try:
        trials = searcher.search.ask(2)
        bad = {VALUE: math.nan, CAUSE: DATA, MESSAGE: "OSError: no pictures", "done": True}
        for name, one in zip("ab", trials, strict=True):
            searcher._trials[name] = one.id
            searcher.on_trial_complete(name, bad)
        assert searcher.should_end()
        assert searcher.state == "lost"
        assert searcher.reason == "the data cannot be used: OSError: no pictures"
        known = searcher.search.history.trials
        assert [one.is_open for one in known] == [True, True]
        assert not any(one.retries for one in known)
    finally:
        searcher.search.close()


def test_a_check_that_lacks_its_data_leaves_the_config_to_the_workers(tmp_path: Path) -> None:
    sweep = Sweep(
        "simulation", f"{TRAINER}:train", method="random", trainer_options={"is_missing": True}
    )
    create_folder(tmp_path, sweep)
    trainer = load_trainer(sweep.trainer)
    searcher = SweepSearch(sweep, load_space("simulation"), tmp_path, trainer)
    try:
        (one,) = searcher.search.ask(1)
        assert not searcher._refuse(one.first)
        assert one.is_open
    finally:
        searcher.search.close()


def test_the_log_of_a_trial_is_a_stream_of_text_like_any_other(tmp_path: Path) -> None:
    with printed_to(tmp_path):
        print("said")
        sys.stdout.buffer.write(b"as bytes\n")
        sys.stdout.flush()
        assert sys.stdout.name == str(tmp_path / "log.txt")
        assert not hasattr(sys.stdout, "_private")
    assert (tmp_path / "log.txt").read_text().splitlines() == ["said", "as bytes"]
