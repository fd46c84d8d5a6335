"""Sweeps on a real Ray whose trials are told to pause or to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import ray
from ray._private.state import actors
from rich.console import Console

from nasbo.history import Ending, View
from nasbo.search import Verdict
from nasbo.start import Display, resume_sweep
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import SweepFolder, create_folder, trial_folder
from nasbo.sweeps.job import sweep_name
from nasbo.sweeps.settings import Sweep
from nasbo.sweeps.status import status
from nasbo.tune.verdicts import Board
from tests.tune.listening import N_TRIALS, STOP_AT_TWO, run

pytestmark = [pytest.mark.ray]
X = "x: {type: float, range: [0, 1]}\n"


def make(folder: Path, space: str = X, **settings: Any) -> None:
    file = folder.parent / "own_space.yaml"
    file.write_text(space)
    settings = {"trials": N_TRIALS, "slots": 2, "cpus_per_trial": 0.5, **settings}
    sweep = Sweep(
        str(file), "tests.tune.listening:train", metric="loss", method="random", **settings
    )
    create_folder(folder, sweep)


def epochs(folder: Path, number: int) -> list[str]:
    return (trial_folder(folder, number) / "epochs.txt").read_text().split()


def assert_best_went_on(folder: Path, history: View) -> None:
    """All have paused at 2; the best was trained to its end, and no epoch was trained twice."""
    assert history.n_suggested == N_TRIALS
    best = history.best
    assert best is not None
    assert best.config["x"] == min(trial.config["x"] for trial in history.trials)
    assert best.value == pytest.approx(best.config["x"] + 1 / 4)
    assert [step for step, _ in best.curve] == [1, 2, 3, 4]
    assert epochs(folder, best.id) == ["1", "2", "3", "4"]
    for trial in history.trials:
        if trial.id != best.id:
            assert trial.first.is_paused
            assert epochs(folder, trial.id) == ["1", "2"]
            assert (trial_folder(folder, trial.id) / "checkpoint.txt").exists(), "not pruned"
    assert len(list(folder.glob("trials/*"))) == N_TRIALS


@pytest.mark.usefixtures("local_ray")
def test_all_pause_and_the_best_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    make(folder, keep_checkpoints=0)
    outcome = run(folder)
    assert outcome.state == "finished"
    assert_best_went_on(folder, outcome.history)
    best = outcome.history.best
    assert best is not None
    assert (len(best.attempts), dict(best.retries)) == (2, {})
    found = status(SweepFolder(folder))
    assert (found["finished"], found["paused"], found["failed"]) == (1, N_TRIALS - 1, 0)


@pytest.mark.usefixtures("local_ray")
def test_what_is_paused_stays_so_in_a_sweep_without_a_rule(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    make(folder)
    run(folder)
    assert resume_sweep(folder, N_TRIALS + 2, Display(Console(quiet=True))) == 0
    history = SweepFolder(folder).history
    assert history.state_counts() == {"paused": N_TRIALS - 1, "finished": 3}
    assert [epochs(folder, number) for number in (N_TRIALS, N_TRIALS + 1)] == [list("1234")] * 2


def test_a_sweep_goes_on_after_its_driver_was_killed(tmp_path: Path, local_ray: None) -> None:
    folder = tmp_path / "s"
    make(folder, trainer_options={"seconds": 0.3, "tells_step": True})
    code = "import sys; from tests.tune.listening import Path, run; run(Path(sys.argv[1]))"
    root = Path(__file__).parents[2]
    process = subprocess.Popen([sys.executable, "-c", code, str(folder)], cwd=root)
    deadline = time.monotonic() + 240
    while not (folder / JOURNAL_FILE).exists() or SweepFolder(folder).history.n_ended < 3:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.1)
    process.kill()
    process.wait()
    before = SweepFolder(folder).history.state_counts()
    assert before["paused"] >= 3
    assert "finished" not in before
    outcome = run(folder)
    assert outcome.state == "finished"
    assert outcome.history.state_counts() == {"paused": N_TRIALS - 1, "finished": 1}
    n_twice = 0
    for trial in outcome.history.trials:
        trained = epochs(folder, trial.id)
        n_twice += len(trained) - len(set(trained))
        assert trial.step == int(trained[-1])
        assert 2 <= trial.step <= 3 or trial.state == "finished", (
            "3: killed between file and report"
        )
    assert n_twice <= 2, "at most the epochs that ran when the driver was killed"


@pytest.mark.usefixtures("local_ray")
def test_verdicts_of_the_driver_reach_the_trainer(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    kinds = ["listens", "returns", "deaf", "diverges"]
    listed = ", ".join(kinds)
    make(folder, f"{X}kind: {{type: choice, range: [{listed}]}}\n", trials=10)
    history = run(folder, STOP_AT_TWO).history
    boards = [one for one in actors().values() if one["ActorClassName"] == sweep_name(folder)]
    assert boards
    assert {one["State"] for one in boards} == {"DEAD"}
    assert {trial.config["kind"] for trial in history.trials} == set(kinds)
    for trial in history.trials:
        kind, first = trial.config["kind"], trial.first
        ending = Ending.DIVERGED if kind == "diverges" else Ending.STOPPED
        assert (first.step, first.ending) == (2, ending)
        n_trained = 3 if kind == "deaf" else 2  # it is ended at its next report
        assert len(epochs(folder, trial.id)) == n_trained
        assert [one.step for one in first.measurements] == [1, 2]
        if kind != "diverges":
            assert first.value == pytest.approx(trial.config["x"] + 1 / 2)


@pytest.mark.usefixtures("local_ray")
def test_a_board_that_is_lost_lets_trials_go_on() -> None:
    board = Board("own")
    assert board.take("a") is Verdict.GO_ON
    board.post("a", Verdict.STOP)
    assert board.take("b") is Verdict.GO_ON
    assert board.take("a") is Verdict.STOP
    assert board.take("a") is Verdict.GO_ON, "an answer is for one report"
    board.post("a", Verdict.STOP)
    os.kill(ray.get(board._actor.__ray_call__.remote(lambda _: os.getpid())), signal.SIGKILL)
    assert board.take("a") is Verdict.GO_ON
    deadline = time.monotonic() + 60
    while board.take("c") is Verdict.GO_ON and time.monotonic() < deadline:
        board.post("c", Verdict.PAUSE)
    assert time.monotonic() < deadline, "it comes back"
    board.close()
    assert board.take("c") is Verdict.GO_ON
