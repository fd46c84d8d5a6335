"""The documented trainer whose trials are runs of Ray Train over two workers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nasbo.shipped import ROOT
from nasbo.sweeps import load_sweep

pytestmark = [pytest.mark.ray, pytest.mark.slow]
EXAMPLE = ROOT / "docs" / "examples" / "several_workers.py"
SPACE = (
    "width: {type: powerint2, range: [2...5]}\nlearning_rate: {type: float, range: [0.01, 0.3]}\n"
)
WORDS = (
    "run", "space.yaml", "--trainer", "several_workers:train", "--method", "random",
    "--trials", "2", "--slots", "1", "--cpus-per-trial", "0.1", "--rungs", "1,3", "--eta", "2",
    "-o", "epochs=3", "-o", "cpus_per_worker=0.9", "--dir", "runs/first", "--address", "local",
)  # fmt: skip


def test_trials_over_two_workers_pause_and_go_on(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE, tmp_path)
    (tmp_path / "space.yaml").write_text(SPACE)
    done = subprocess.run(
        [sys.executable, "-m", "nasbo.cli", *WORDS], cwd=tmp_path, capture_output=True, text=True,
        check=False, timeout=590, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    trials = load_sweep(tmp_path / "runs" / "first").trials
    assert {trial.state for trial in trials} == {"paused", "finished"}
    for trial in trials:
        assert {report.metrics["workers"] for report in trial.first.measurements} == {2}
        steps = [step for step, _ in trial.curve]
        assert steps == ([1, 2, 3] if trial.state == "finished" else [1])
