"""Searches with an accuracy that is trained, and a size that is known before."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from nasbo.search import Search
from nasbo.space import Config, load_space
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import create_folder
from nasbo.sweeps.settings import features_of, make_sweep
from nasbo.trainer import load_trainer

SPACE: dict[str, Any] = {
    "depth": {"type": "int", "range": [1, 9]},
    "width": {"type": "powerint2", "range": [3, 9]},
    "rate": {"type": "float", "range": [1e-4, 1e-1], "log": True},
}
TEXTS = ["acc max", "params min"]


def sizes(config: Config) -> dict[str, float]:
    return {"params": config["depth"] * config["width"] ** 2, "layers": config["depth"]}


def accuracy(config: Config) -> float:
    """Larger networks are better, at a rate of 0.003."""
    size = math.log(config["depth"] * config["width"])
    return 1.0 - 1.0 / (1.0 + size) - (math.log10(config["rate"]) + 2.5) ** 2 / 20


def drive(search: Search, n: int, plain: bool = False) -> None:
    """Ask and tell ``n`` trials, one after the other."""
    for _ in range(n):
        (trial,) = search.ask()
        value = accuracy(trial.config)
        search.tell(trial, value if plain else {"acc": value})


def make_folder(folder: Path, n_trials: int = 20) -> Path:
    """A finished sweep of random networks of CIFAR-10, by accuracy and FLOPs, without training.

    The accuracy grows with the FLOPs, with a ripple; every ninth trial has failed.
    """
    trainer = "trainers.cifar10:train"
    goal = ["val_accuracy max", "flops min"]
    given = {"space": "nas_cifar10", "trainer": trainer, "method": "random", "objectives": goal}
    sweep = make_sweep({**given, "metric": "val_accuracy", "mode": "max", "trials": n_trials})
    create_folder(folder, sweep)
    with Search(
        "nas_cifar10",
        "random",
        journal=folder / JOURNAL_FILE,
        notes=sweep.notes(),
        objectives=goal,
        features=features_of(sweep, load_space("nas_cifar10")),
    ) as search:
        for number in range(n_trials):
            (trial,) = search.ask()
            if number % 9 == 8:
                search.tell(trial, error="crashed")
                continue
            flops = load_trainer(trainer).describe(trial.config, {})["flops"]
            value = 0.5 + 0.05 * math.log10(flops) - 0.1 * math.sin(7 * number) ** 2
            search.tell(trial, {"val_accuracy": value})
    return folder
