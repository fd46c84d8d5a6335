"""Callbacks of a sweep on a real Ray: told once by each driver, and without power over it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nasbo.sweeps.folder import SweepFolder, create_folder
from nasbo.sweeps.settings import Sweep
from nasbo.tune.observers import Observers
from nasbo.tune.run import run_sweep

pytestmark = [pytest.mark.ray]


@pytest.mark.usefixtures("local_ray")
def test_a_resumed_sweep_tells_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes, folder, told = tmp_path / "notes", tmp_path / "s", list[str]()
    monkeypatch.setenv("NOTES", str(notes))
    callbacks = ["tests.tune.calling:Failing", "tests.tune.calling:Notes"]
    sweep = Sweep(
        "simulation", "tests.tune.toy:simulation", method="random", trials=4, slots=2,
        cpus_per_trial=0.5, callbacks=callbacks,
    )  # fmt: skip
    create_folder(folder, sweep)
    for n_trials in (4, 6):
        held = SweepFolder(folder)
        observers = Observers(tell=told.append)
        outcome = run_sweep(folder, held.settings, held.space, n_trials, observers)
        assert outcome.state == "finished"
    lines = notes.read_text().splitlines()
    starts = [line for line in lines if line.startswith(("start", "stop"))]
    pid = os.getpid()
    assert starts == [f"start 0 pid {pid}", "stop 4", f"start 4 pid {pid}", "stop 6"]
    history = SweepFolder(folder).history
    assert [line for line in lines if line.startswith("round")] == [
        " ".join(
            ["round", str(r.number), *(str(t.id) for t in history.trials if t.round == r.number)]
        )
        for r in history.rounds
    ]
    ends = [f"end {trial.id} finished" for trial in history.trials]
    assert sorted(line for line in lines if line.startswith("end")) == ends
    reports = [f"report {r.number} {one.step}" for r in history.runs for one in r.measurements]
    assert sorted(line for line in lines if line.startswith("report")) == sorted(reports)
    words = "callbacks: tests.tune.calling:Failing failed {} times; the log says why"
    assert [line for line in told if "callbacks" in line] == [words.format(4), words.format(2)]
