"""Scenario of a launched sweep on three hosts, of which one joins late and one dies.

python -m tests.launch.scenario [--trials N]
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nasbo.history.journal import read_events
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import SweepFolder
from nasbo.tune.trial import trial_folder
from tests.launch.conftest import SWEEP, TRAINER
from tests.launch.hosts import Hosts

GPUS = 2
"""Of each host, which is its number of slots."""


@dataclass
class Figures:
    """Figures of the scenario.

    Attributes:
        first_work_s: from a host's joining to the start of a trial on it.
        busy_share: of the slots, from the first start until no trials wait, by the journal.
        working_share: the same by the trainers' own clocks, without the start of processes.
    """

    job_status: str = ""
    first_work_s: float = 0.0
    busy_share: float = 0.0
    working_share: float = 0.0
    n_finished: int = 0
    retries: dict[str, int] = field(default_factory=dict)
    gpus: dict[str, list[str]] = field(default_factory=dict)
    n_overlaps: int = 0
    files: set[str] = field(default_factory=set)


class Scenario:
    """One cluster and one sweep on it."""

    def __init__(self, root: Path, n_trials: int, seconds: tuple[float, float]) -> None:
        self.home, self.n_trials = root / "home", n_trials
        self.home.mkdir()
        (self.home / "my_own_trainer.py").write_text(TRAINER)
        space = f"seconds: {{type: float, range: [{seconds[0]}, {seconds[1]}]}}\n"
        (self.home / "my_space.yaml").write_text(space)
        (self.home / "sweep.yaml").write_text(SWEEP.replace("trials: 6", f"trials: {n_trials}"))
        self.folder = root / "shared" / "s"
        self.capacity: list[tuple[float, int]] = []
        (root / "cluster").mkdir()
        self.hosts = Hosts(root / "cluster", {"NASBO_STATE": str(root / "state")})

    def add(self, name: str, *options: str, **variables: str) -> float:
        own = (f"--num-gpus={GPUS}", "--num-cpus=2")
        self.hosts.add(name, *own, *options, NASBO_TEST_HOST=name, **variables)
        self._note_capacity(GPUS)
        return time.time()

    def kill(self, name: str) -> None:
        self._note_capacity(-GPUS)
        self.hosts.kill(name)

    def _note_capacity(self, change: int) -> None:
        before = self.capacity[-1][1] if self.capacity else 0
        self.capacity.append((time.time(), before + change))

    def nasbo(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "nasbo.cli", *words],
            cwd=self.home,
            env=self.hosts.environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def launch(self, gpus: float = 1, *words: str) -> str:
        return self.nasbo(
            *("launch", "sweep.yaml", "--on", self.hosts.url, "--dir", str(self.folder)),
            *("--gpus-per-trial", str(gpus), "--cpus-per-trial", "0", *words),
        )

    def wait(self, what: str, condition: Any, timeout_s: float = 300) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{what} did not come:\n{self.nasbo('logs', str(self.folder))}")
            time.sleep(0.2)

    def n_running(self) -> int:
        if not (self.folder / JOURNAL_FILE).exists():
            return 0
        return SweepFolder(self.folder).history.state_counts()["running"]

    def n_ended(self) -> int:
        if not (self.folder / JOURNAL_FILE).exists():
            return 0
        return SweepFolder(self.folder).history.n_ended

    def notes(self) -> list[dict[str, Any]]:
        files = (trial_folder(self.folder, n) / "note.json" for n in range(self.n_trials))
        return [json.loads(file.read_text()) for file in files if file.exists()]

    def job_status(self) -> str:
        records = (self.hosts.folder.parent / "state" / "launches").glob("*.json")
        job = max(
            (json.loads(file.read_text()) for file in records), key=lambda record: record["time"]
        )
        command = ["ray", "job", "status", "--address", self.hosts.url, job["id"]]
        done = subprocess.run(command, env=self.hosts.environment, capture_output=True, text=True)
        return done.stdout + done.stderr

    def shutdown(self) -> None:
        self.hosts.shutdown()


def play(root: Path, n_trials: int, seconds: tuple[float, float]) -> Figures:
    """Two hosts; a third joins while trials run; one of the first dies; the sweep finishes."""
    scenario = Scenario(root, n_trials, seconds)
    try:
        scenario.add("a")
        scenario.add("b")
        scenario.launch()
        scenario.wait("work for both", lambda: scenario.n_running() >= 2 * GPUS)
        scenario.wait("a result", lambda: scenario.n_ended() >= 2)
        joined_at = scenario.add("c")
        scenario.wait("work for the third", lambda: scenario.n_running() >= 3 * GPUS)
        scenario.wait("more results", lambda: scenario.n_ended() >= n_trials // 2)
        scenario.kill("a")
        scenario.nasbo("logs", "-f", str(scenario.folder))
        figures = _figures(scenario)
        begins = [note["begin"] for note in scenario.notes() if note["host"] == "c"]
        figures.first_work_s = min(begins, default=math.nan) - joined_at
        return figures
    finally:
        scenario.shutdown()


def _figures(scenario: Scenario) -> Figures:
    history = SweepFolder(scenario.folder).history
    notes = scenario.notes()
    events = read_events(scenario.folder / JOURNAL_FILE)
    by_host: dict[str, list[str]] = {}
    for note in notes:
        by_host.setdefault(note["host"], []).append(note["gpus"])
    working = [(note["begin"], note["end"]) for note in notes]
    begin = min(item["time"] for item in events if item["event"] == "started")
    end = max(item["time"] for item in events if item["event"] == "started")
    return Figures(
        job_status=scenario.job_status(),
        busy_share=share(attempts(events), scenario.capacity, begin, end),
        working_share=share(working, scenario.capacity, begin, end),
        n_finished=history.state_counts()["finished"],
        retries=dict(history.retry_counts()),
        gpus={host: sorted(set(found)) for host, found in by_host.items()},
        n_overlaps=overlaps(notes),
        files={note["file"] for note in notes},
    )


def attempts(events: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """Start and end of each attempt of each trial, by the journal."""
    begun: dict[int, float] = {}
    found = []
    for item in events:
        if item["event"] == "started":
            begun[item["run"]] = item["time"]
        elif item["event"] in ("ended", "requeued"):
            found.append((begun.pop(item["run"]), item["time"]))
    return found


def share(
    spans: list[tuple[float, float]], capacity: list[tuple[float, int]], begin: float, end: float
) -> float:
    """Share of the slots' time between two instants that spans cover.

    Spans beyond the number of slots (trials of a dead host whose loss is not
    yet detected) do not count.
    """
    instants = {begin, end, *(at for at, _ in capacity), *(at for span in spans for at in span)}
    marks = sorted(at for at in instants if begin <= at <= end)
    filled = offered = 0.0
    for left, right in itertools.pairwise(marks):
        slots = max(((at, n) for at, n in capacity if at <= left), default=(left, 0))[1]
        running = sum(a <= left and right <= b for a, b in spans)
        offered += slots * (right - left)
        filled += min(running, slots) * (right - left)
    return filled / offered


def overlaps(notes: list[dict[str, Any]]) -> int:
    """How often two trials used the same GPU of the same host at the same time."""
    count = 0
    for number, one in enumerate(notes):
        for other in notes[number + 1 :]:
            is_same = (one["host"], one["gpus"]) == (other["host"], other["gpus"])
            count += is_same and one["begin"] < other["end"] and other["begin"] < one["end"]
    return count


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--keep", type=Path, help="a new folder for all of it, kept")
    chosen = parser.parse_args()
    with contextlib.ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="nasbo-scenario-")
        folder = chosen.keep or stack.enter_context(temporary)
        Path(folder).mkdir(exist_ok=True)
        for name, value in vars(play(Path(folder), chosen.trials, (5, 30))).items():
            print(f"{name}: {value}")
