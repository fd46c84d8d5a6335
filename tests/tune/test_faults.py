"""Failing trials: which are retried, which are recorded, and with which cause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nasbo.history import Ending, Run, Trial
from nasbo.search import Search
from nasbo.search.retries import RetryPolicy
from nasbo.storage.mirror import open_mirror
from nasbo.sweeps.folder import SweepFolder
from nasbo.sweeps.policies import prune_checkpoints
from nasbo.sweeps.settings import Sweep
from nasbo.sweeps.status import status
from nasbo.tune.endings import LAST_TIMEOUT_FILE, cause_of_loss
from nasbo.tune.log import LOG_FILE
from nasbo.tune.sweep_search import SweepSearch
from nasbo.tune.trial import (
    TIMEOUT_FILE,
    WORKER_FILE,
    TrialTask,
    TuneSession,
    trial_folder,
)
from tests.tune.test_run import make, run, space_file

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("local_ray")]


def faulty(tmp_path: Path, kinds: list[str], **settings: Any) -> list[Trial]:
    text = f"kind: {{type: choice, range: [{', '.join(kinds)}]}}\nx: {{type: choice, range: [1]}}\n"
    folder = tmp_path / "s"
    settings = {"trials": len(kinds), "max_failures": 1, **settings}
    make(folder, space_file(tmp_path, text), trainer="tests.tune.toy:faults", **settings)
    history = run(folder).history
    return sorted(history.trials, key=lambda trial: kinds.index(trial.config["kind"]))


def attempts(tmp_path: Path, trial: Trial) -> list[str]:
    return (trial_folder(tmp_path / "s", trial.id) / "attempts.txt").read_text().split()


def test_trials_that_break_off_are_run_again_as_their_cause_allows(tmp_path: Path) -> None:
    kinds = ["killed_once", "killed", "hung_once", "oom_once", "oom", "crash_once", "crash"]
    trials = faulty(tmp_path, kinds, report_timeout_s=4.0)
    ended = {t.config["kind"]: (t.state, t.cause, dict(t.retries)) for t in trials}
    assert ended == {
        "killed_once": ("finished", None, {"killed": 1}),
        "killed": ("failed", "killed", {"killed": 1}),
        "hung_once": ("finished", None, {"timeout": 1}),
        "oom_once": ("finished", None, {"oom": 1}),
        "oom": ("failed", "oom", {"oom": 1}),
        "crash_once": ("finished", None, {"crashed": 1}),
        "crash": ("failed", "crashed", {"crashed": 1}),
    }
    assert all(len(attempts(tmp_path, trial)) == 2 for trial in trials)
    assert attempts(tmp_path, trials[3]) == ["0", "1"], "a retry knows that memory was short"
    found = status(SweepFolder(tmp_path / "s"))
    assert found["retries"] == {"killed": 2, "timeout": 1, "oom": 2, "crashed": 2}
    assert found["causes"] == {"killed": 1, "oom": 1, "crashed": 1}


def test_a_training_that_was_killed_before_its_last_report_has_a_value(tmp_path: Path) -> None:
    text = "x: {type: choice, range: [1]}\ny: {type: choice, range: [1]}\n"
    trainer = {"trainer": "tests.tune.rescued:train", "metric": "loss"}
    make(tmp_path / "s", space_file(tmp_path, text), trials=1, max_failures=1, **trainer)
    (trial,) = run(tmp_path / "s").history.trials
    assert (trial.state, trial.value) == ("finished", 1 + 1 / 3)
    assert dict(trial.retries) == {"killed": 1}
    assert [step for step, _ in trial.curve] == [1, 2, 1, 2, 3], "its last value was lost"
    log = trial_folder(tmp_path / "s", trial.id) / LOG_FILE
    steps, told = "step 1\nstep 2\nstep 3\n", log.read_text()
    assert told.startswith(steps)
    assert told.endswith(steps)
    assert "whose value is lost: training begins again" in told


def test_a_trainer_that_always_fails_stops_the_sweep(tmp_path: Path) -> None:
    text = "x: {type: float, range: [0, 1]}\nkind: {type: choice, range: [crash]}\n"
    folder = tmp_path / "s"
    make(
        folder, space_file(tmp_path, text), trainer="tests.tune.toy:faults", trials=50,
        max_failures=0, max_failures_in_a_row=4,
    )  # fmt: skip
    outcome = run(folder)
    assert outcome.state == "failed"
    assert "4 trials failed one after the other" in outcome.reason
    assert "a bug of the user" in outcome.reason
    n_before = outcome.history.n_ended
    assert n_before < 10
    again = run(folder)
    assert again.state == "failed"
    assert n_before + 4 <= again.history.n_ended < n_before + 10, "a resume counts anew"


def test_a_design_that_crashes_in_one_way_ends_the_sweep_and_a_resume_goes_on(
    tmp_path: Path,
) -> None:
    text = "x: {type: float, range: [0, 1]}\nkind: {type: choice, range: [crash]}\n"
    folder = tmp_path / "s"
    make(
        folder, space_file(tmp_path, text), trainer="tests.tune.toy:faults", trials=50,
        max_failures=0,
    )  # fmt: skip
    outcome = run(folder)
    assert outcome.state == "failed"
    assert "trials crashed in the same way: ValueError: a bug of the user" in outcome.reason
    n_before = outcome.history.n_ended
    assert 5 <= n_before < 10
    again = run(folder, trainer="tests.tune.toy:always", n_trials=n_before + 2)
    assert (again.state, again.history.n_ended) == ("finished", n_before + 2)


@pytest.mark.slow
def test_a_full_disk_stops_the_sweep_and_nothing_is_blamed(tmp_path: Path) -> None:
    text = "x: {type: int, range: [0, 6]}\nkind: {type: choice, range: [full_disk_once]}\n"
    folder = tmp_path / "s"
    make(folder, space_file(tmp_path, text), trainer="tests.tune.toy:faults", trials=4, slots=4)
    outcome = run(folder)
    assert outcome.state == "lost"
    assert "cannot be written: OSError: [Errno 28] No space left on device" in outcome.reason
    assert not [t for t in outcome.history.trials if t.state == "failed"]
    states = {outcome.state}
    while outcome.state != "finished":
        outcome = run(folder)
        states.add(outcome.state)
    assert states == {"lost", "finished"}
    assert {t.state for t in outcome.history.trials} == {"finished"}


def test_missing_data_stop_the_sweep_and_nothing_is_blamed(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    options = {"is_missing": True}
    make(folder, trainer="tests.tune.dataless:train", trials=6, trainer_options=options)
    outcome = run(folder)
    assert outcome.state == "lost"
    assert "the data cannot be used: PreparationError: tests.tune.dataless:train" in outcome.reason
    assert "no pictures in /nowhere" in outcome.reason
    assert not [t for t in outcome.history.trials if t.state == "failed" or t.retries]
    again = run(folder, trainer_options={})
    assert again.state == "finished"
    assert {t.state for t in again.history.trials} == {"finished"}


def test_a_worker_that_waits_for_its_next_trial_is_not_taken_for_silent(tmp_path: Path) -> None:
    text = "kind: {type: choice, range: [quick, slow]}\n"
    folder, trainer = tmp_path / "s", "tests.tune.toy:quick_or_slow"
    make(folder, space_file(tmp_path, text), trainer=trainer, trials=2, report_timeout_s=2.0)
    history = run(folder).history
    assert [(t.state, dict(t.retries)) for t in history.trials] == [("finished", {})] * 2
    assert not list(folder.glob(f"trials/*/{TIMEOUT_FILE}"))


def test_the_last_files_of_a_trial_reach_the_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NASBO_CACHE", str(tmp_path / "cache"))
    text = "kind: {type: choice, range: [value, report]}\n"
    folder, trainer = open_mirror(f"file://{tmp_path}/runs/s"), "tests.tune.toy:returning"
    make(folder, space_file(tmp_path, text), trainer=trainer, trials=2, metric="loss")
    assert {t.state for t in run(folder).history.trials} == {"finished"}
    stored = tmp_path.glob("runs/s/trials/*/weights.bin")
    assert sorted(file.read_text() for file in stored) == ["report", "value"]


def test_checkpoints_stay_only_with_the_best(tmp_path: Path) -> None:
    text = "x: {type: int, range: [0, 6]}\nkind: {type: choice, range: [good]}\n"
    folder = tmp_path / "s"
    make(
        folder, space_file(tmp_path, text), trainer="tests.tune.toy:faults", trials=6,
        keep_checkpoints=2,
    )  # fmt: skip
    history = run(folder).history
    left = [t for t in history.trials if (trial_folder(folder, t.id) / "checkpoint.pt").exists()]
    assert sorted(t.value or 0 for t in left) == [0, 1]


def test_pruning_keeps_nothing_if_told_so(tmp_path: Path) -> None:
    search = Search("simulation", "random")
    (trial,) = search.ask(1)
    search.tell(trial, 1.0)
    file = trial_folder(tmp_path, 0) / "checkpoint.pt"
    file.parent.mkdir(parents=True)
    file.touch()
    steps = file.parent / "checkpoint-100"
    steps.mkdir()
    (steps / "model.pt").touch()
    ended = search.history.runs
    assert prune_checkpoints(tmp_path, ended, search.history, 0) == []
    assert not list(file.parent.iterdir())


def test_causes_from_what_ray_says(tmp_path: Path) -> None:
    died = "ray.exceptions.ActorDiedError: The actor died unexpectedly"
    assert cause_of_loss(died, tmp_path) == "killed"
    assert cause_of_loss(f"{died} because its node has died", tmp_path) == "lost"
    assert cause_of_loss("ray.exceptions.OutOfMemoryError: killed", tmp_path) == "oom"
    assert cause_of_loss("ModuleNotFoundError: no module", tmp_path) == "crashed"
    (tmp_path / WORKER_FILE).write_text('{"node": "gone"}')
    assert cause_of_loss(died, tmp_path) == "lost"
    (tmp_path / TIMEOUT_FILE).write_text("Timeout!")
    assert cause_of_loss(died, tmp_path) == "timeout"
    assert cause_of_loss(died, tmp_path) == "lost", "one timeout is one attempt's"
    assert (tmp_path / LAST_TIMEOUT_FILE).read_text() == "Timeout!"


def test_a_timeout_in_the_bucket_is_that_of_one_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NASBO_CACHE", str(tmp_path / "cache"))
    folder = open_mirror(f"file://{tmp_path}/runs/s")
    make(folder)
    held = SweepFolder(folder)
    searcher = SweepSearch(held.settings, held.space, folder, held.trainer)
    first = searcher.suggest("a")
    file = trial_folder(tmp_path / "runs" / "s", first["trial"]) / TIMEOUT_FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("Timeout!")
    searcher.on_error("a", "ActorDiedError")
    assert searcher.suggest("b") == first
    searcher.on_error("b", "ActorDiedError: its node has died")
    assert searcher.search.history.trials[first["trial"]].retries == {"timeout": 1, "lost": 1}
    searcher.search.close()


def test_an_attempt_begins_without_the_timeout_of_the_one_before(tmp_path: Path) -> None:
    file = trial_folder(tmp_path, 3) / TIMEOUT_FILE
    file.parent.mkdir(parents=True)
    file.write_text("Timeout!")
    TuneSession(TrialTask(str(tmp_path), Sweep("simulation", "own:train")), 3)
    assert not file.exists()


def should_retry(run: Run, cause: str, message: str, max_failures: int) -> bool:
    return RetryPolicy(max_failures)(run, Ending.of(cause), message)


def test_machines_are_forgiven_always_and_configs_a_few_times() -> None:
    run = Run(0, 0, retries={"lost": 100})
    assert should_retry(run, "lost", "", 0)
    assert should_retry(run, "crashed", "", 1)
    run = Run(0, 0, retries={"lost": 100, "killed": 1})
    assert not should_retry(run, "timeout", "", 1)
    assert should_retry(run, "oom", "", 0)
    for final in ("diverged", "invalid", "no result", "stopped", "paused"):
        assert not should_retry(run, final, "", 9)


def test_a_crash_that_repeats_with_the_same_message_is_not_tried_a_third_time() -> None:
    run = Run(0, 0, message="ValueError: 3 rows at 0x7f01 do not fit")
    assert should_retry(run, "crashed", run.message, 9), "the first one"
    run = replace(run, retries={"crashed": 1})
    assert should_retry(run, "crashed", "ConnectionError: reset by peer", 9)
    assert not should_retry(run, "crashed", "ValueError: 4 rows at 0x7fa2 do not fit", 9)
