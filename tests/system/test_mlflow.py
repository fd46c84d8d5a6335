"""Sweeps in a real MLflow: killed drivers, trackers and servers lose and double nothing."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from nasbo.history.journal import read_events
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import SweepFolder, create_folder
from nasbo.sweeps.settings import Sweep
from tests.chaos.audit import Witness, audit
from tests.chaos.drivers import drive, uninterrupted
from tests.system.trackers import MlflowServer, log_of, points, reports, track

pytestmark = [pytest.mark.system, pytest.mark.timeout(3600)]
N_TRIALS = 36
N_KILLS = 10
METRIC = "loss"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MlflowServer]:
    found = MlflowServer(tmp_path)
    found.start()
    yield found
    found.kill()


class Scene:
    """A sweep, its driver, and a tracker that follows it."""

    def __init__(self, folder: Path, server: MlflowServer) -> None:
        self.folder, self.server, self.rng = folder, server, random.Random(0)
        sweep = Sweep(
            space="simulation", trainer="tests.chaos.trainer:train", method="random", slots=3,
            trials=N_TRIALS, cpus_per_trial=0.5, metric=METRIC, seed=0,
            trainer_options={"step_s": 0.3},
        )  # fmt: skip
        create_folder(folder, sweep)
        self.tracker = self.begin_tracker()
        self.faults: Counter[str] = Counter()

    def begin_tracker(self) -> subprocess.Popen[str]:
        words = ("--to", "mlflow", "--tracking-uri", self.server.url, "--follow")
        return track(self.folder, *words, "--interval", "0.3")

    def n_reports(self) -> int:
        events = read_events(self.folder / JOURNAL_FILE)
        return sum(event["event"] == "reported" for event in events)

    def drive_and_kill(self) -> None:
        """A driver that is killed after some reports, at a random time."""
        before, wanted = self.n_reports(), self.rng.randrange(4, 14)
        driver = drive(self.folder)
        while driver.poll() is None and self.n_reports() < before + wanted:
            time.sleep(0.05)
        time.sleep(self.rng.uniform(0, 0.5))
        assert driver.poll() is None, self.folder.with_name("sweep.log").read_text()
        driver.send_signal(signal.SIGKILL)
        driver.wait(timeout=60)
        self.faults["driver"] += 1

    def kill_tracker(self) -> None:
        """In the middle of sending, as there is always something new."""
        assert self.tracker.poll() is None, log_of(self.folder).read_text()
        self.tracker.kill()
        self.tracker.wait(timeout=60)
        self.tracker = self.begin_tracker()
        self.faults["tracker"] += 1


def test_every_trial_and_every_point_is_there_once(tmp_path: Path, server: MlflowServer) -> None:
    scene = Scene(tmp_path / "sweep", server)
    witness = Witness(scene.folder)
    for number in range(N_KILLS):
        if number == 4:
            server.kill()
            scene.faults["server"] += 1
        if number == 7:
            assert "cannot be reached" in log_of(scene.folder).read_text()
            server.start()
        scene.drive_and_kill()
        witness.look()
        if number % 3 == 1:
            scene.kill_tracker()
    driver = drive(scene.folder)
    while driver.poll() is None:
        time.sleep(scene.rng.uniform(4, 8))
        scene.kill_tracker()
    assert driver.returncode == 0
    ended_at = time.monotonic()
    assert scene.tracker.wait(timeout=300) == 0, log_of(scene.folder).read_text()
    told = f"{dict(scene.faults)}, caught up {time.monotonic() - ended_at:.1f} s after the end"
    found = audit(witness, N_TRIALS, uninterrupted(0, N_TRIALS, "random", None))
    assert found.is_clean, found
    _check(scene.folder, server, told)


def _check(folder: Path, server: MlflowServer, told: str) -> None:
    """Compare the server's database with the journal."""
    history, runs = SweepFolder(folder).history, server.runs()
    kinds = Counter(run.tags["nasbo.kind"] for run in runs)
    assert kinds == {"sweep": 1, "trial": N_TRIALS}
    keys = [run.tags["nasbo.run"] for run in runs]
    assert sorted(keys) == sorted({"sweep"} | {f"{t.id:05d}" for t in history.trials})
    expected, there = reports(history, METRIC), points(runs)
    counts = Counter(spot for spot, _ in there)
    missing, doubled = expected.keys() - counts.keys(), [s for s, n in counts.items() if n > 1]
    print(
        f"{told}; {len(runs)} runs, {len(there)} points of {len(expected)}, {len(missing)} missing,"
        f" {len(doubled)} doubled, {len(there) - len(counts & Counter(expected.keys()))} strange"
    )
    assert not missing
    assert not doubled
    assert dict(there) == expected
    (parent,) = (run for run in runs if run.tags["nasbo.kind"] == "sweep")
    for run in runs:
        assert run.status == "FINISHED"
        if run is not parent:
            trial = history.trial(int(run.tags["nasbo.trial"]))
            assert run.tags["mlflow.parentRunId"] == parent.id
            assert run.tags["nasbo.state"] == "finished"
            assert {name: float(text) for name, text in run.params.items()} == trial.config
            assert [row for row in run.rows if row[0] == "nasbo.value"] == [
                ("nasbo.value", 1, trial.value)
            ]
    best = history.best
    assert best is not None
    assert parent.tags["nasbo.best_trial"] == str(best.id)
    assert float(parent.tags["nasbo.best_value"]) == best.value
    curve = [row for row in parent.rows if row[0] == f"best/{METRIC}"]
    assert [step for _, step, _ in sorted(curve, key=lambda row: row[1])] == [*range(1, 37)]
