"""Problem `cifar10_proxy`: real training of block networks on CIFAR-10 by the recipe proxy.

An evaluation trains a network for 5 to 40 s. The training seed is drawn from a few, and values are
stored by the network's fingerprint and that seed, so a repeated evaluation is free. Methods are
scored by the configs that they return after 40 trials, trained again with other seeds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nasbo.bench.problem import Config, Problem
from nasbo.bench.problems.entry import Entry
from nasbo.bench.problems.folders import data_folder
from nasbo.bench.problems.nas_proxy import NETWORK_FEATURES
from nasbo.bench.problems.store import Store
from nasbo.errors import NasboError
from nasbo.space import load_space
from nasbo.trainer import Trainer, load_trainer

TRAINER = "trainers.cifar10:train"
VERSION = 2
STORED_SINCE = 1
"""Version since which the stored values are unchanged."""
N_SEEDS = 3
"""Number of training seeds that a search sees: 0, 1 and 2."""
TRUE_SEEDS = (3, 4, 5)
"""Training seeds whose mean error is a config's truth; no search sees them."""
TRUE_AFTER = (40,)
"""Numbers of trials after the design at which returned configs are trained again."""
CHANCE_ERROR = 0.9


@dataclass
class Session:
    """Session for the trainer; keeps the reports in memory."""

    folder: Path
    seed: int
    options: Mapping[str, Any]
    n_out_of_memory: int = 0
    until: int | None = None
    reports: list[dict[str, float]] = field(default_factory=list)

    def report(self, metrics: dict[str, float], step: int | None = None) -> bool:
        """Keep the metrics of an epoch."""
        self.reports.append(metrics)
        return True


def train_once(trainer: Trainer, config: Config, seed: int, options: Mapping[str, Any]) -> float:
    """Validation error after the last epoch; chance level if the network diverges."""
    with tempfile.TemporaryDirectory(prefix="nasbo-proxy-") as folder:
        session = Session(Path(folder), seed, options)
        try:
            trainer(config, session)
        except ArithmeticError:
            return CHANCE_ERROR
    return 1 - float(session.reports[-1]["val_accuracy"])


def cifar10(name: str, options: Mapping[str, Any]) -> Problem:
    """The problem of a recipe; values include the noise of training."""
    space, store = load_space("nas_cifar10"), _store(name)

    def trained(config: Config, seed: int) -> float:
        trainer = load_trainer(TRAINER)
        if trainer.fingerprint is None:
            raise NasboError(f"{TRAINER} must offer a fingerprint")
        key = f"{trainer.fingerprint(config)}/{seed}"
        return store.value(key, lambda: train_once(trainer, config, seed, options))

    def evaluate(config: Config, rng: np.random.Generator) -> float:
        return trained(config, int(rng.integers(N_SEEDS)))

    def truth(config: Config) -> float:
        return float(np.mean([trained(config, seed) for seed in TRUE_SEEDS]))

    return Problem(
        name,
        space,
        evaluate,
        truth,
        version=VERSION,
        is_returned=True,
        is_truth_costly=True,
        truth_after=TRUE_AFTER,
        features=NETWORK_FEATURES,
    )


def _store(name: str) -> Store:
    return Store(f"{name}-{STORED_SINCE}")


def check_data() -> None:
    """Raise if CIFAR-10 is not prepared on this machine."""
    manifest = data_folder() / "cifar10" / "manifest.json"
    if not manifest.is_file():
        raise NasboError(f"CIFAR-10 is needed: run 'nasbo data cifar10'; there is no {manifest}")


ENTRIES: dict[str, Entry] = {
    "cifar10_proxy": Entry(
        make=lambda: cifar10("cifar10_proxy", {"recipe": "proxy", "is_tensorboard": False}),
        group="nas",
        half="held-out",
        summary="real networks on a small part of CIFAR-10, 5 to 40 s each",
        is_slow=True,
        cost="seconds",
        needs="nasbo data cifar10",
        check=check_data,
        store=lambda: _store("cifar10_proxy"),
    )
}
