"""Problem `cifar10_epochs`: block networks trained on CIFAR-10, with learning curves by epoch.

The recipe is `proxy` with 18 epochs. The rungs, epochs 2, 6 and 18, are scored on all validation
pictures, other epochs on a fifth of them. A training takes about a minute; its curve is stored by
config and training seed.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nasbo.bench.problem import Config, Curve, Problem
from nasbo.bench.problems import proxy
from nasbo.bench.problems.curves import curve_problem
from nasbo.bench.problems.entry import Entry
from nasbo.bench.problems.store import Store
from nasbo.space import Space, load_space
from nasbo.trainer import load_trainer

N_EPOCHS = 18
RUNGS = (2, 6, N_EPOCHS)
OPTIONS = {"recipe": "proxy", "epochs": N_EPOCHS, "is_tensorboard": False}
N_FINALS = 50
"""Number of random configs whose errors set the scale of regrets and noise."""
VERSION = 1
NAMES = {0: "cifar10_epochs", 1: "cifar10_epochs_again"}
"""Names by training seed; the difference between both shows the noise of training."""


@dataclass
class Session(proxy.Session):
    """Session for the trainer; keeps the last report of each epoch in memory."""

    errors: dict[int, float] = field(default_factory=dict)

    def report(self, metrics: dict[str, float], step: int | None = None) -> bool:
        """Keep the error of an epoch; true until the rung is reached."""
        epoch = len(self.errors) + 1 if step is None else step
        self.errors[epoch] = 1 - float(metrics["val_accuracy"])
        return self.until is None or epoch < self.until


def train_curve(config: Config, seed: int) -> list[float]:
    """Validation error after each epoch; chance level from where a network diverges."""
    errors: dict[int, float] = {}
    with tempfile.TemporaryDirectory(prefix="nasbo-epochs-") as folder:
        for rung in RUNGS:
            session = Session(Path(folder), seed, OPTIONS, until=rung, errors=errors)
            try:
                load_trainer(proxy.TRAINER)(config, session)
            except ArithmeticError:
                break
    return [errors.get(epoch, proxy.CHANCE_ERROR) for epoch in range(1, N_EPOCHS + 1)]


def key_of(space: Space, config: Config, seed: int) -> str:
    """The store's key for a training's curve; the config can be read from it."""
    return f"{json.dumps(space.canonical(config), sort_keys=True)} seed {seed}"


def store() -> Store:
    return Store(f"cifar10_epochs-{VERSION}")


def cifar10_epochs(seed: int) -> Problem:
    """The problem with one training seed."""
    space = load_space("nas_cifar10")

    def at(config: Config, step: int, rng: np.random.Generator) -> float:
        key = key_of(space, config, seed)
        return store().curve(key, N_EPOCHS, lambda: train_curve(config, seed))[step - 1]

    def finals() -> tuple[float, ...]:
        rng = np.random.default_rng(0)
        return tuple(at(space.sample(rng), N_EPOCHS, rng) for _ in range(N_FINALS))

    return curve_problem(NAMES[seed], space, Curve(at, N_EPOCHS, finals), version=VERSION)


def _entry(seed: int) -> Entry:
    return Entry(
        make=lambda: cifar10_epochs(seed),
        group="nas",
        half="held-out",
        summary=f"block networks by {N_EPOCHS} epochs of real training, seed {seed}",
        is_slow=True,
        cost="seconds",
        needs="nasbo data cifar10",
        check=proxy.check_data,
        store=store,
    )


ENTRIES: dict[str, Entry] = {name: _entry(seed) for seed, name in NAMES.items()}
