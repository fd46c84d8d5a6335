"""Drivers killed at random times, with torn journals: the resumed sweep must be the same sweep."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nasbo import Search
from nasbo.history import Run
from nasbo.search import Driver, Schedule
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import create_folder
from nasbo.sweeps.settings import Sweep
from tests.chaos.audit import N_STEPS, Audit, Witness, audit, decisions
from tests.chaos.trainer import loss

ROOT = Path(__file__).parents[2]
N_SLOTS = 3
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def drive(folder: Path, *words: str, log: Path | None = None) -> subprocess.Popen[bytes]:
    """Start a driver in its own process; its output goes to a log next to the folder."""
    log = log or folder.parent / f"{folder.name}.log"
    command = [sys.executable, "-m", "nasbo.cli", "resume", str(folder), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with log.open("ab") as file:
        return subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=file, env=environment)


def kill_drivers(
    folder: Path,
    seed: int,
    n_kills: int,
    n_trials: int,
    method: str,
    rungs: Sequence[int] | None = None,
) -> Audit:
    """Run one sweep whose driver is killed ``n_kills`` times."""
    rng = random.Random(seed)
    sweep = Sweep(
        space="simulation", trainer="tests.chaos.trainer:train", method=method, trials=n_trials,
        slots=N_SLOTS, cpus_per_trial=0.5, metric="loss", seed=seed,
        rungs="off" if rungs is None else list(rungs),
    )  # fmt: skip
    create_folder(folder, sweep)
    witness, found = Witness(folder), Audit()
    for _ in range(n_kills):
        number = rng.choice(SIGNALS)
        if not _kill_once(folder, witness, rng, number):
            break
        found.faults[f"driver {number.name}"] += 1
        if number == signal.SIGKILL and rng.random() < 0.5:
            _tear(folder / JOURNAL_FILE, rng)
            found.faults["torn journal"] += 1
    process = drive(folder)
    if process.wait(timeout=600) != 0:
        raise RuntimeError(f"the last resume failed: see {folder}.log")
    return found + audit(witness, n_trials, uninterrupted(seed, n_trials, method, rungs))


def _kill_once(folder: Path, witness: Witness, rng: random.Random, number: signal.Signals) -> bool:
    """Kill a driver some time after its first write; False if it finished before."""
    journal = folder / JOURNAL_FILE
    n_lines = rng.choice((1, 3, 10, 20, 30))
    before = _n_lines(journal)
    process = drive(folder)
    while process.poll() is None and _n_lines(journal) < before + n_lines:
        time.sleep(0.01)
    time.sleep(rng.uniform(0, 0.3))
    if process.poll() is not None:
        return False
    process.send_signal(number)
    process.wait(timeout=120)
    witness.look()
    return True


def _n_lines(journal: Path) -> int:
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def _tear(journal: Path, rng: random.Random) -> None:
    """Leave half a line at the end, as a power cut during a write does."""
    line = journal.read_bytes().splitlines()[-1]
    with journal.open("ab") as file:
        file.write(line[: rng.randrange(1, len(line))])


def uninterrupted(seed: int, n_trials: int, method: str, rungs: Sequence[int] | None) -> list[Any]:
    """Decisions of the same search in one process, without faults."""
    search = Search("simulation", method=method, seed=seed, rungs=rungs)
    driver = Driver(search, Schedule(budget=n_trials))
    while isinstance(run := driver.next(N_SLOTS), Run):
        step = run.until or N_STEPS
        value = loss(search.history.trial(run.number).config, step)
        driver.on_report(run.number, step, value, {})
        driver.on_end(run.number, value, step=step)
    return decisions(event.to_json() for event in search.events)
