"""Trainer of the chaos tests: slow steps, a checkpoint after each, and a log."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.chaos.audit import N_STEPS
from tests.tune.toy import simulation

RESUMES = True


def steps(options: Mapping[str, Any]) -> int:
    """Number of steps of a full training."""
    return N_STEPS


def train(config: dict[str, Any], session: Any) -> None:
    file = session.folder / "state.json"
    done = json.loads(file.read_text()) if file.exists() else 0
    note(session.folder, "begin", done)
    (session.folder / "ballast").write_bytes(bytes(int(session.options.get("ballast", 0))))
    if done == (session.until or N_STEPS):
        session.report({"loss": loss(config, done)}, step=done)
        return
    for step in range(done, N_STEPS):
        time.sleep(float(session.options.get("step_s", 0.15)))
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps(step + 1))
        os.replace(partial, file)
        note(session.folder, "saved", step + 1)
        if not session.report({"loss": loss(config, step + 1)}, step=step + 1):
            return


def loss(config: dict[str, Any], step: int) -> float:
    """Loss after a number of steps; it decreases by one per step."""
    return simulation(config) + (N_STEPS - step)


def note(folder: Path, kind: str, step: int) -> None:
    with (folder / "steps.txt").open("a") as log:
        log.write(json.dumps({"kind": kind, "step": step, "time": time.time()}) + "\n")
