"""Sweeps in a bucket: killed drivers lose nothing acknowledged, and only one process writes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nasbo.history.journal import read_events
from nasbo.storage.lease import NAME as LEASE_FILE
from nasbo.storage.location import Location
from nasbo.storage.mirror import JOURNAL_FILE, open_mirror, pull
from nasbo.sweeps.folder import SweepFolder
from tests.launch.hosts import ROOT
from tests.storage.race import race
from tests.system.s3 import BucketServer

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]
N_TRIALS = 20
N_RACES = 60


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BucketServer]:
    found = BucketServer(tmp_path)
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    yield found
    found.shutdown()


class Drivers:
    """Drivers of one sweep, each with its own local files, as on different machines."""

    def __init__(self, home: Path, url: str) -> None:
        self.home, self.url = home, url
        self.log = home / "driver.log"
        self.n_started = 0

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        self.n_started += 1
        environment = {
            **os.environ,
            "NASBO_CACHE": str(self.home / f"cache{self.n_started}"),
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
        }
        command = [
            *(sys.executable, "-m", "nasbo.cli", "run", "simulation", "--dir", self.url),
            *("--trainer", "tests.chaos.trainer:train", "--method", "random", "--metric", "loss"),
            *("--trials", str(N_TRIALS), "--slots", "2", "--cpus-per-trial", "0.5"),
            *("--or-resume", "-o", "step_s=0.2", *words),
        ]
        with self.log.open("ab") as log:
            return subprocess.Popen(command, cwd=self.home, env=environment, stdout=log, stderr=log)


def test_killed_three_times_nothing_acknowledged_is_lost(
    tmp_path: Path, server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NASBO_CACHE", str(tmp_path / "observer"))
    url = server.url("runs/first")
    drivers, seen = Drivers(tmp_path, url), {}
    mirror = open_mirror(url)
    for n_more in (2, 4, 4):
        process = drivers.start()
        target = len(seen) + n_more
        deadline = time.monotonic() + 300
        while len(seen) < target:
            assert process.poll() is None, drivers.log.read_text()
            assert time.monotonic() < deadline, drivers.log.read_text()
            seen = look(mirror, seen)
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
        seen = look(mirror, seen)
    assert drivers.start().wait(timeout=600) == 0, drivers.log.read_text()
    look(mirror, seen)
    history = SweepFolder(mirror).history
    assert history.n_ended == history.n_suggested == N_TRIALS
    assert {trial.state for trial in history.trials} == {"finished"}
    ends = Counter(e["run"] for e in read_events(mirror / JOURNAL_FILE) if e["event"] == "ended")
    assert set(ends.values()) == {1}
    check_checkpoints(Location(url))
    stored = Location(url).sizes("")
    assert {"sweep.yaml", "space.yaml", "best_so_far.png"} <= set(stored)


def look(mirror: Path, seen: dict[int, Any]) -> dict[int, Any]:
    """What the bucket has acknowledged by now, which must include all that was there before."""
    pull(mirror)
    if not (mirror / JOURNAL_FILE).exists():
        return seen
    history = SweepFolder(mirror).history
    now = {t.id: (t.config, t.value) for t in history.trials if t.state == "finished"}
    assert {number: now.get(number) for number in seen} == seen
    return now


def check_checkpoints(location: Location) -> None:
    """No trial was restarted although its checkpoint was in the bucket."""
    for number in range(N_TRIALS):
        log = location.read(f"trials/{number:05d}/steps.txt")
        assert log is not None
        saved = -1
        for line in log.decode().splitlines():
            entry = json.loads(line)
            assert not (entry["kind"] == "begin" and entry["step"] < saved)
            saved = entry["step"] if entry["kind"] == "saved" else saved


def test_a_second_driver_is_refused_wherever_it_runs(tmp_path: Path, server: BucketServer) -> None:
    drivers = Drivers(tmp_path, server.url("runs/second"))
    first = drivers.start("--option", "step_s=2")
    try:
        deadline = time.monotonic() + 240
        while "starting Ray" not in drivers.log.read_text() and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(3)
        second = drivers.start("--option", "step_s=2")
        assert second.wait(timeout=120) == 2
        assert "is being written by process" in drivers.log.read_text()
        assert first.poll() is None
    finally:
        first.terminate()
        first.wait(timeout=120)
    shutil.rmtree(tmp_path / "cache1")


def test_of_drivers_that_start_at_the_same_moment_one_may_write(server: BucketServer) -> None:
    assert race(server.url("races"), N_RACES) == [1] * N_RACES


def test_of_drivers_that_wait_for_a_dead_one_one_may_write(server: BucketServer) -> None:
    gone = {"id": "x", "host": "elsewhere", "process": 1, "epoch": 3, "beat": 9, "time": 0}
    n_races = N_RACES // 6
    for number in range(n_races):
        Location(server.url(f"waits/{number}")).write(LEASE_FILE, json.dumps(gone).encode())
    assert race(server.url("waits"), n_races, lease_s=2) == [1] * n_races
