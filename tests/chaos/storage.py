"""Disk that fills up during a sweep, and is freed later."""

from __future__ import annotations

import subprocess
from pathlib import Path

from nasbo.sweeps.folder import create_folder
from nasbo.sweeps.settings import Sweep
from tests.chaos.audit import Audit, Witness, audit
from tests.chaos.drivers import drive, uninterrupted


def fill_disk(disk: Path, seed: int, n_trials: int) -> Audit:
    """Run one sweep on a small file system of its own; mounting it needs root."""
    disk.mkdir(parents=True, exist_ok=True)
    _mount(disk, "size=256k")
    folder = disk / "sweep"
    log = disk.parent / f"{disk.name}.log"
    try:
        sweep = Sweep(
            space="simulation", trainer="tests.chaos.trainer:train", method="random", slots=3,
            trials=n_trials, cpus_per_trial=0.5, metric="loss", seed=seed,
            trainer_options={"step_s": 0.02, "ballast": 4096},
        )  # fmt: skip
        create_folder(folder, sweep)
        witness, found = Witness(folder), Audit()
        code = drive(folder, log=log).wait(timeout=300)
        witness.look()
        if code != 3 or "No space left on device" not in log.read_text():
            raise RuntimeError(f"a full disk ended the sweep with {code}: see {log}")
        found.faults["disk full"] += 1
        _mount(disk, "remount,size=64m")
        if drive(folder, log=log).wait(timeout=300) != 0:
            raise RuntimeError(f"the sweep could not be resumed: see {log}")
        return found + audit(witness, n_trials, uninterrupted(seed, n_trials, "random"))
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def _mount(disk: Path, options: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]
    subprocess.run(command, check=True)
