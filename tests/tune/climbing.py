"""Trainers with known curves, for sweeps with rungs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nasbo.sweeps.folder import SweepFolder
from nasbo.tune.run import Outcome, run_sweep

RESUMES = True
FULL = 18
METRIC, MODE = "loss", "min"


def steps(options: Mapping[str, Any]) -> int:
    return FULL


def loss(config: dict[str, Any], step: int) -> float:
    return float(config["x"] + 1 / step)


def train(config: dict[str, Any], session: Any) -> None:
    """Continues from its checkpoint; stops when it is told to."""
    file = session.folder / "checkpoint.txt"
    done = int(file.read_text()) if file.exists() else 0
    if done == (session.until or FULL):
        session.report({"loss": loss(config, done)}, step=done)
        return
    for step in range(done + 1, FULL + 1):
        time.sleep(session.options.get("seconds", 0.0))
        with (session.folder / "steps.txt").open("a") as log:
            log.write(f"{step}\n")
        file.write_text(str(step))
        if not session.report({"loss": loss(config, step)}, step=step):
            return


def deaf(config: dict[str, Any], session: Any) -> None:
    """Trains from the beginning, and ignores the answers to its reports."""
    for step in range(1, FULL + 1):
        with (session.folder / "steps.txt").open("a") as log:
            log.write(f"{step}\n")
        session.report({"loss": loss(config, step)})


def run(folder: Path) -> Outcome:
    """Run or continue a sweep."""
    held = SweepFolder(folder)
    return run_sweep(folder, held.settings, held.space)
