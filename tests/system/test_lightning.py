"""The callback for Lightning: restarts to the bit, rungs, and a sweep of what init writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nasbo.starter import write_starter
from nasbo.sweeps import load_sweep
from tests.system.kit import run

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]
SCRIPT = Path(__file__).with_name("lightning_restart.py")


def test_killed_or_paused_a_training_ends_with_the_same_bits(tmp_path: Path) -> None:
    write_starter("lightning", tmp_path)
    found = json.loads(run("-W", "ignore", SCRIPT, folder=tmp_path).splitlines()[-1])
    whole = found["whole"]
    assert found["exit"] == 9
    assert len(whole) == 4
    assert set(whole[0]) == {"val_accuracy", "val_loss", "train_loss"}
    assert whole[-1]["val_accuracy"] > 0.4
    assert found["killed"] == whole[2:]
    # To the first rung, there once more as nobody had heard, to the second, to the end, once more.
    assert found["rungs"] == [whole[:1], whole[:1], whole[1:3], whole[3:], whole[3:]]
    assert found["is_equal"]


def test_its_sweep_runs_with_rungs(tmp_path: Path) -> None:
    write_starter("lightning", tmp_path)
    words = ("run", "sweep.yaml", "--trials", "3", "--rungs", "1,3", "-o", "epochs=3")
    place = ("--dir", "runs/first", "--address", "local", "--method", "random")
    run("-m", "nasbo.cli", *words, *place, folder=tmp_path)
    trials = load_sweep(tmp_path / "runs" / "first").trials
    states = {trial.state for trial in trials}
    assert states == {"paused", "finished"}
    steps = {trial.state: trial.step for trial in trials}
    assert (steps["paused"], steps["finished"]) == (1, 3)
    went_on = [trial for trial in trials if trial.state == "finished"]
    for trial in went_on:  # three epochs were trained, not one and then three
        assert [step for step, _ in trial.curve] == [1, 2, 3]
