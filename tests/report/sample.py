"""Folders of simulated sweeps with everything that a report can show, at known times."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from nasbo.history import History, Trial, replay
from nasbo.history.events import Event, Opened
from nasbo.history.journal import Journal, read_events
from nasbo.methods import Suggestion
from nasbo.search import Search
from nasbo.space import load_space
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import SweepFolder, create_folder
from nasbo.sweeps.settings import make_sweep
from tests.events import failed, finished, reported, started

START = 1_700_000_000.0


def make_folder(
    folder: Path,
    n_trials: int = 24,
    space: str = "nas_cifar10",
    budget: int | None = None,
    **settings: Any,
) -> Path:
    """A sweep of ``n_trials`` ended trials, of which every ninth has failed.

    Trials last 60 s, four at a time; the value is 0.5 + learning_rate or C, plus a ripple.
    """
    trainer = "trainers.cifar10:train" if space.startswith("nas") else "own:train"
    given = {"space": space, "trainer": trainer, "trials": budget or n_trials, "mode": "max"}
    sweep = make_sweep({**given, "metric": "val_accuracy", **settings})
    create_folder(folder, sweep)
    rng = np.random.default_rng(sweep.seed)
    with Search(
        space,
        sweep.method,
        sweep.mode,
        sweep.seed,
        journal=folder / JOURNAL_FILE,
        notes=sweep.notes(),
        **sweep.method_options,
    ) as search:
        while (missing := n_trials - len(search.history.trials)) > 0:
            _play_round(search, min(4, missing), rng)
    return folder


def _play_round(search: Search, n: int, rng: np.random.Generator) -> None:
    number = len(search.history.rounds)
    chosen = [search.space.subspace(int(rng.integers(search.space.n_subspaces))) for _ in range(n)]
    source = "design" if number < 2 else "model"
    thought = {"log_ei": -1.0, "fit_s": 0.2, "preset": "default"}
    guess = {"predicted": 0.6, "predicted_low": 0.5, "predicted_high": 0.7}
    sign = 1.0 if search.history.mode == "max" else -1.0
    info = thought | {key: sign * value for key, value in guess.items()}
    suggestions = [
        Suggestion(one.sample_config(rng), "design" if source == "design" else "model",
                   dict(info) if source == "model" else {})
        for one in chosen
    ]  # fmt: skip
    for trial in search.add_round(suggestions, 0.5 + number, []):
        play(search, trial, START + 70.0 * number)


def play(search: Search, trial: Trial, start: float) -> None:
    """Simulate a trial that lasts a minute."""
    search.record(started(trial.id, time=start))
    value = value_of(trial)
    metrics = {"epochs": 3, "params": 1e5 + 1e3 * trial.id, "flops": 1e7 * (1 + trial.id % 5)}
    for step in (1, 2, 3):
        at = {"time": start + 20 * step, "metrics": metrics}
        search.record(reported(trial.id, step, value * step / 3, **at), sync=False)
    end = start + 60.0
    if trial.id % 9 == 8:
        search.record(failed(trial.id, "crashed", message="<b>oops</b>", time=end))
    else:
        search.record(finished(trial.id, value, metrics=metrics, step=3, time=end))


def make_interrupted(folder: Path, is_resumed: bool = True) -> Path:
    """A sweep of four trials on two slots, interrupted after 90 s and resumed an hour later.

    Two trials of 60 s end. Of the other two, one is interrupted 30 s after its start and trained
    again for 60 s; the other one had not started yet.
    """
    given = {"space": "svm", "trainer": "own:train", "trials": 4, "method": "random", "mode": "max"}
    create_folder(folder, make_sweep(given))
    path = folder / JOURNAL_FILE
    with Search("svm", "random", "max", journal=path) as search:
        first, second, third, _ = search.open_round(4)
        for item in (
            *(started(trial.id, time=START) for trial in (first, second)),
            *(_ending(trial, START + 60.0) for trial in (first, second)),
            started(third.id, time=START + 60.0),
            reported(third.id, 1, 0.1, time=START + 90.0),
        ):
            search.record(item)
    if is_resumed:
        _resume(path, START + 3690.0)
    return folder


def _resume(path: Path, time: float) -> None:
    events = read_events(path)
    space = load_space("svm")
    with Journal(path) as journal:
        journal.append(Opened(time=time).to_json())
        history = replay(space, "max", events)
        for run in history.open_runs:
            journal.append(started(run.number, time=time).to_json())
            journal.append(_ending(history.trial(run.number), time + 60.0).to_json())


def _ending(trial: Trial, time: float) -> Event:
    return finished(trial.id, value_of(trial), step=3, time=time)


def value_of(trial: Trial) -> float:
    config = trial.config
    strong = config.get("learning_rate", config.get("C", 0.0))
    return float(0.5 + strong + 0.002 * math.sin(trial.id))


def history_of(folder: Path) -> History:
    return SweepFolder(folder).history
