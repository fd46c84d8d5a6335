"""Trainers that are told whether to go on, and a stopping rule that lets only the best go on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from nasbo.history import Measurement, Run, View
from nasbo.search import StoppingRule, Verdict
from nasbo.sweeps.folder import SweepFolder
from nasbo.tune.run import Outcome, run_sweep

N_EPOCHS, N_TRIALS = 4, 6


def train(config: dict[str, Any], session: Any) -> dict[str, float] | None:
    """Some epochs, from the checkpoint on; ``kind`` says how the trainer uses an answer."""
    file, kind = session.folder / "checkpoint.txt", config.get("kind", "listens")
    done = int(file.read_text()) if file.exists() else 0
    for epoch in range(done + 1, N_EPOCHS + 1):
        time.sleep(session.options.get("seconds", 0.0))
        with (session.folder / "epochs.txt").open("a") as log:
            log.write(f"{epoch}\n")
        file.write_text(str(epoch))
        loss = float("nan") if kind == "diverges" else config["x"] + 1 / epoch
        step = epoch if session.options.get("tells_step") else None
        if not session.report({"loss": loss}, step) and kind != "deaf":
            return {"loss": loss} if kind == "returns" else None
    return None


def due(history: View) -> list[tuple[int, int | None]]:
    """The best is continued to its end when all have paused."""
    paused = [run for run in history.runs if run.is_paused]
    if len(paused) < N_TRIALS:
        return []
    return [(min(paused, key=lambda run: run.value or 0.0).number, None)]


def stop_at_two(run: Run, measured: Measurement) -> Verdict:
    """Known to the driver alone."""
    return Verdict.STOP if measured.step == 2 else Verdict.GO_ON


BEST_GOES_ON = StoppingRule(until=lambda run: 2, due=due)
STOP_AT_TWO = StoppingRule(verdict=stop_at_two)


def run(folder: Path, rule: StoppingRule = BEST_GOES_ON) -> Outcome:
    """Run or continue a sweep."""
    opened = SweepFolder(folder)
    sweep, space = opened.settings, opened.space
    return run_sweep(folder, sweep, space, stopping=rule)
