"""A trainer for the chaos runs: slow steps, a checkpoint after each, and a log of all of it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from tests.chaos.audit import N_STEPS
from tests.tune.toy import simulation


def train(config: dict[str, Any], session: Any) -> None:
    file = session.folder / "state.json"
    done = json.loads(file.read_text()) if file.exists() else 0
    note(session.folder, "begin", done)
    (session.folder / "ballast").write_bytes(bytes(int(session.options.get("ballast", 0))))
    for step in range(done, N_STEPS):
        time.sleep(float(session.options.get("step_s", 0.15)))
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps(step + 1))
        os.replace(partial, file)
        note(session.folder, "saved", step + 1)
        session.report({"loss": simulation(config) + (N_STEPS - 1 - step)})
    if done == N_STEPS:
        session.report({"loss": simulation(config)})


def note(folder: Path, kind: str, step: int) -> None:
    with (folder / "steps.txt").open("a") as log:
        log.write(json.dumps({"kind": kind, "step": step, "time": time.time()}) + "\n")
