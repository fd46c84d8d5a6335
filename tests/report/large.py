"""Folder of a large sweep that nobody ran: trials with learning curves, endings and predictions."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.random import Generator

from nasbo.history import Trial
from nasbo.history.events import Event
from nasbo.methods import Suggestion
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import create_folder
from nasbo.sweeps.settings import make_sweep
from tests.events import failed, finished, reported, started

START = 1_700_000_000.0
REPORT_S = 30.0
ROUND = 500
CAUSES = ("oom", "diverged", "crashed")


def make_large_folder(
    folder: Path, n_trials: int = 10_000, n_reports: int = 20, space: str = "nas_cifar10"
) -> Path:
    """A sweep of many trials; one in ten fails on its way, by one of three causes."""
    given = {"space": space, "trainer": "trainers.cifar10:train", "trials": n_trials}
    sweep = make_sweep({**given, "mode": "max", "metric": "val_accuracy"})
    create_folder(folder, sweep)
    rng = np.random.default_rng(0)
    journal = folder / JOURNAL_FILE
    with Search(space, sweep.method, "max", 0, journal=journal, notes=sweep.notes()) as search:
        while (missing := n_trials - len(search.history.trials)) > 0:
            trials = search.add_round(_suggestions(search, min(ROUND, missing), rng), 3.0, [])
            search.record(*(e for t in trials for e in _events(t, n_reports)), sync=False)
    return folder


def _suggestions(search: Search, n: int, rng: Generator) -> list[Suggestion]:
    is_design = not search.history.rounds
    chosen = []
    for _ in range(n):
        config = search.space.sample(rng)
        median = _final(config) + 0.01 * float(rng.standard_normal())
        guess = {"predicted": median, "predicted_low": median - 0.01,
                 "predicted_high": median + 0.01, "log_ei": -3.0 * float(rng.random()),
                 "scored_by": "log_ei", "fit_s": 1.25}  # fmt: skip
        source = "design" if is_design else "model"
        chosen.append(Suggestion(config, source, {} if is_design else guess))  # type: ignore[arg-type]
    return chosen


def _final(config: dict[str, object]) -> float:
    """The value of a full training: what it would be without noise."""
    rate = float(config.get("learning_rate", 0.1))  # type: ignore[arg-type]
    ratios = config.get("expand_ratio", [6])
    return 0.7 + 0.05 * math.cos(40 * (rate - 0.11)) + 0.01 * float(np.mean(ratios))  # type: ignore[arg-type]


def _events(trial: Trial, n_reports: int) -> list[Event]:
    """What happens to a trial; four at a time."""
    rng = np.random.default_rng([1, trial.id])
    begin = START + (trial.id // 4) * (n_reports + 1) * REPORT_S
    value = _final(trial.config) + 0.01 * float(rng.standard_normal())
    last = n_reports // 2 if trial.id % 10 == 9 else n_reports
    events: list[Event] = [started(trial.id, time=begin)]
    for step in range(1, last + 1):
        at = value * (1 - math.exp(-4 * step / n_reports)) + 0.004 * float(rng.standard_normal())
        metrics = {"epochs": step, "loss": 1.3 - at, "params": 10_000.0 + 7 * trial.id,
                   "flops": 1e7 + 1e4 * (trial.id % 97)}  # fmt: skip
        time = begin + step * REPORT_S
        events.append(reported(trial.id, step, at, metrics=metrics, time=time))
    end = begin + (last + 1) * REPORT_S
    if last < n_reports:
        cause = CAUSES[trial.id // 10 % len(CAUSES)]
        return [*events, failed(trial.id, cause, message=f"ended by a made {cause}", time=end)]
    return [*events, finished(trial.id, value, metrics=metrics, step=last, time=end)]
