"""Sweep under Slurm: submitted, signalled, pre-empted, stopped, launched again and finished."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import SweepFolder
from tests.chaos.audit import Witness, audit
from tests.launch.hosts import ROOT
from tests.system.slurm import Slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]
N_TRIALS = 26


@pytest.fixture
def slurm() -> Iterator[Slurm]:
    found = Slurm()
    yield found
    found.shutdown()


class User:
    """A user with a sweep file and a command line."""

    def __init__(self, folder: Path, slurm: Slurm) -> None:
        self.home, self.slurm, self.sweep = folder, slurm, folder / "runs" / "s"
        self.log = self.sweep / "driver.log"
        (folder / "sweep.yaml").write_text(
            "space: simulation\ntrainer: tests.chaos.trainer:train\nmethod: random\n"
            f"metric: loss\nschedule: async\ntrials: {N_TRIALS}\ntrainer_options: {{step_s: 0.5}}\n"
        )

    def nasbo(self, *words: str) -> str:
        environment = {
            **self.slurm.environment,
            "HOME": str(self.home),
            "NASBO_STATE": str(self.home / "state"),
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "nasbo.cli", *words]
        done = subprocess.run(
            command, cwd=self.home, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def launch(self) -> str:
        self.nasbo(
            *("launch", "sweep.yaml", "--on", "slurm", "--dir", str(self.sweep)),
            *("-v", "partition=low", "-v", "cpus_per_node=2", "-v", "signal_s=60"),
        )
        return self.slurm.run("squeue", "-h", "-p", "low", "-o", "%i").split()[-1]

    def n_ended(self) -> int:
        if not (self.sweep / JOURNAL_FILE).exists():
            return 0
        return SweepFolder(self.sweep).history.n_ended

    def wait(self, what: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 400
        while not condition():
            said = self.log.read_text(errors="replace") if self.log.exists() else ""
            assert time.monotonic() < deadline, f"{what}: {said}\n{self.slurm.words()}"
            time.sleep(0.3)

    def state(self, job: str) -> str:
        shown = self.slurm.run("scontrol", "show", "job", job)
        return shown.partition("JobState=")[2].partition(" ")[0]

    def n_restarts(self, job: str) -> int:
        shown = self.slurm.run("scontrol", "show", "job", job)
        return int(shown.partition("Restarts=")[2].partition(" ")[0] or 0)


def test_signalled_preempted_stopped_and_finished(tmp_path: Path, slurm: Slurm) -> None:
    user = User(tmp_path, slurm)
    job = user.launch()
    user.wait("first results", lambda: user.n_ended() >= 2)
    witness = Witness(user.sweep)
    witness.look()
    slurm.run("scancel", "--batch", "--signal=USR1", job)
    user.wait("the requeue after the signal", lambda: user.n_restarts(job) == 1)
    witness.look()

    before = user.n_ended()
    user.wait("results after the requeue", lambda: user.n_ended() >= before + 2)
    more = ["sbatch", "-p", "high", "-c", "4", "--output", os.devnull, "--wrap", "sleep 5"]
    slurm.run(*more)
    user.wait("the requeue by pre-emption", lambda: user.n_restarts(job) == 2)
    witness.look()

    before = user.n_ended()
    user.wait("results after the pre-emption", lambda: user.n_ended() >= before + 2)
    said = user.nasbo("stop", str(user.sweep))
    assert "resume it" in said
    assert user.n_ended() < N_TRIALS
    witness.look()
    again = user.launch()
    assert again != job
    user.wait("the end", lambda: user.state(again) not in ("PENDING", "RUNNING", "COMPLETING"))
    assert user.state(again) == "COMPLETED", user.log.read_text()
    said = user.nasbo("logs", str(user.sweep))
    assert said.count("back into the queue") == 2
    assert f"finished: {N_TRIALS} of {N_TRIALS} trials" in said
    found = audit(witness, N_TRIALS, None)
    assert found.is_clean, found.rows()
    assert not list((tmp_path / ".nasbo").glob("slurm-*/token")), "a token was left behind"
