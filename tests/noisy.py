"""Searches with estimates of noise-free values, journaled as by a method that has found noise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nasbo.history import Mode, Trial
from nasbo.history.estimates import ESTIMATES
from nasbo.methods import Suggestion
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import create_folder
from nasbo.sweeps.settings import make_sweep

LUCKY, TRUE_BEST = 0, 2
VALUES = (0.95, 0.70, 0.92, 0.91)
MEANS = {LUCKY: 0.85, TRUE_BEST: 0.90, 3: 0.89}
"""Trial 1 is not among the best: the decision has no estimate of it."""
NOISE_SD = 0.05


def estimates(means: Mapping[int, float], sd: float = 0.02) -> dict[str, Any]:
    """Info of a decision: estimates for the trials of ``means``."""
    return {"noise_sd": NOISE_SD, "trials": {number: [mean, sd] for number, mean in means.items()}}


def decide(search: Search, info: Mapping[str, Any], n: int = 1) -> list[Trial]:
    """A round of random configs, with an info in the first one."""
    drawn, _ = search.decide(n)
    first = Suggestion(drawn[0].config, "model", dict(info))
    return search.add_round([first, *drawn[1:]], 0.0)


def told(search: Search) -> Search:
    """Four trials of which the first was lucky, and a decision whose estimates show it."""
    for trial, value in zip(search.ask(4), VALUES, strict=True):
        search.tell(trial, value)
    decide(search, {ESTIMATES: estimates(MEANS)})
    return search


def noisy_folder(folder: Path, trainer: str = "own:train", mode: Mode = "max") -> Path:
    """The same as the folder of a sweep that was interrupted with one trial open."""
    given = {"space": "svm", "trainer": trainer, "trials": 5, "method": "random", "mode": mode}
    sweep = make_sweep({**given, "metric": "accuracy"})
    create_folder(folder, sweep)
    path = folder / JOURNAL_FILE
    with Search("svm", "random", mode, journal=path, notes=sweep.notes()) as search:
        told(search)
    return folder
