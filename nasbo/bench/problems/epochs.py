"""Problems `mlp_epochs_*`: conditional networks trained by epochs on small tables.

The number of layers determines how many widths, activations and dropouts there are, and each
optimiser has its own parameters. The value is the log-loss after each epoch on a fixed third of the
rows. A curve takes a quarter of a second and is stored.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nasbo.bench.problem import Config, Curve, Problem
from nasbo.bench.problems.curves import GROUPS, curve_problem, with_curve_noise, with_lying_curve
from nasbo.bench.problems.entry import Entry, Half
from nasbo.bench.problems.folders import data_folder
from nasbo.bench.problems.openml import SETS, load_set
from nasbo.bench.problems.parameters import Document, choice, integer, real
from nasbo.bench.problems.store import Store
from nasbo.bench.problems.tuning import SKLEARN
from nasbo.space import Space, load_space

N_EPOCHS = 27
BATCH = 40
LEAST_PROBABILITY = 1e-3
N_FINALS = 50
"""Number of random configs whose losses set the scale of regrets and noise."""
VERSION = 1
DATA = ("diabetes", "monks1", "steel", "monks2")
"""Two sets of the tuning half and two held-out ones."""
NOISY, LYING = ("diabetes", "steel"), ("diabetes", "steel")
ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU, "sigmoid": nn.Sigmoid,
}  # fmt: skip


def mlp_space() -> Space:
    """Six subspaces: one to three layers, two optimisers."""
    layer: Document = {
        "width": {"type": "powerint2", "range": [2, 8]},
        "activation": choice(*ACTIVATIONS),
        "dropout": real(0.0, 0.6),
    }
    optimisers: Document = {
        "adam": {"rate": real(1e-4, 1e-1, log=True), "beta1": real(0.5, 0.99)},
        "sgd": {
            "rate": real(1e-3, 1.0, log=True),
            "momentum": real(0.0, 0.98),
            "nesterov": choice(False, True),
        },
    }
    return load_space(
        {
            "weight_decay": real(1e-6, 1e-1, log=True),
            "optimiser": choice(*optimisers, branches=optimisers),
            "layers": {**integer(1, 3), "submodule": layer},
        }
    )


class Rows:
    """Standardised rows of a set: two thirds for training and one for validation."""

    def __init__(self, data: str) -> None:
        from sklearn.model_selection import train_test_split

        table = load_set(data)
        train, validation = train_test_split(
            np.arange(len(table.labels)), test_size=1 / 3, random_state=0, stratify=table.labels
        )
        known = table.features[train]
        scale = np.where(known.std(0) > 0, known.std(0), 1.0)
        features = torch.as_tensor((table.features - known.mean(0)) / scale, dtype=torch.float32)
        labels = torch.as_tensor(table.labels, dtype=torch.float32)
        self.train = features[train], labels[train]
        self.validation = features[validation], labels[validation]


@lru_cache(maxsize=len(SETS))
def _rows(data: str, folder: Path) -> Rows:
    """The rows of a set, cached by folder."""
    return Rows(data)


def train_curve(config: Config, rows: Rows) -> NDArray[np.float64]:
    """Loss after each epoch, shape (27,); deterministic given the config and the rows."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = _network(config, rows.train[0].shape[1])
        optimiser = _optimiser(config, network)
        return np.array([_epoch(network, optimiser, rows) for _ in range(N_EPOCHS)])


def _epoch(network: nn.Module, optimiser: torch.optim.Optimizer, rows: Rows) -> float:
    features, labels = rows.train
    network.train()
    order = torch.randperm(len(labels))
    for batch in (order[start : start + BATCH] for start in range(0, len(order), BATCH)):
        optimiser.zero_grad()
        output = network(features[batch]).squeeze(1)
        loss: Any = nn.functional.binary_cross_entropy_with_logits(output, labels[batch])
        loss.backward()
        optimiser.step()
    network.eval()
    with torch.no_grad():
        return _loss(network(rows.validation[0]).squeeze(1), rows.validation[1])


def _loss(output: Tensor, labels: Tensor) -> float:
    """Mean log-loss; that of chance if the network's outputs overflow."""
    if not bool(torch.isfinite(output).all()):
        return math.log(2)
    right = torch.sigmoid(torch.where(labels > 0.5, output, -output))
    return float(-right.clamp(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY).log().mean())


def _network(config: Config, n_features: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    size = n_features
    for width, activation, dropout in zip(
        config["width"], config["activation"], config["dropout"], strict=True
    ):
        layers += [nn.Linear(size, width), ACTIVATIONS[activation](), nn.Dropout(dropout)]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, 1))


def _optimiser(config: Config, network: nn.Module) -> torch.optim.Optimizer:
    rate, decay, numbers = config["rate"], config["weight_decay"], list(network.parameters())
    if config["optimiser"] == "adam":
        betas = (config["beta1"], 0.999)
        return torch.optim.AdamW(numbers, rate, betas, weight_decay=decay, fused=True)
    # Nesterov momentum needs a positive momentum.
    momentum, is_nesterov = config["momentum"], config["nesterov"] and config["momentum"] > 0
    return torch.optim.SGD(
        numbers, rate, momentum, weight_decay=decay, nesterov=is_nesterov, fused=True
    )


def mlp_epochs(data: str) -> Problem:
    """Networks on one set."""
    space, store = mlp_space(), curve_store(data)
    known: dict[str, NDArray[np.float64]] = {}

    def at(config: Config, step: int, rng: np.random.Generator) -> float:
        own = space.canonical(config)
        key = json.dumps(own, sort_keys=True)
        if key not in known:
            known[key] = np.array(store.curve(key, N_EPOCHS, lambda: _trained(own, data)))
        return float(known[key][step - 1])

    @lru_cache(maxsize=1)
    def finals() -> tuple[float, ...]:
        rng = np.random.default_rng(0)
        return tuple(at(space.sample(rng), N_EPOCHS, rng) for _ in range(N_FINALS))

    curve = Curve(at, N_EPOCHS, finals)
    return curve_problem(f"mlp_epochs_{data}", space, curve, version=VERSION)


def _trained(config: Config, data: str) -> list[float]:
    return [float(loss) for loss in train_curve(config, _rows(data, data_folder()))]


def curve_store(data: str) -> Store:
    """Store of the curves, by version of this code and of torch."""
    made_with = f"torch {torch.__version__.partition('+')[0]}, {SKLEARN.version}"
    return Store(f"mlp_epochs_{data}-{VERSION}", made_with)


def _entry(data: str, summary: str = "", kind: str = "") -> Entry:
    half: Half = SETS[data].half
    makers: dict[str, Callable[[], Problem]] = {
        "": lambda: mlp_epochs(data),
        "_noisy": lambda: with_curve_noise(mlp_epochs(data), f"mlp_epochs_{data}_noisy"),
        "_lying": lambda: with_lying_curve(mlp_epochs(data), f"mlp_epochs_{data}_lying"),
    }
    return Entry(
        make=makers[kind],
        group=GROUPS[kind],
        half=half,
        summary=f"networks of 1 to 3 layers by {N_EPOCHS} epochs on {data}{summary}",
        cost="< 1 s",
        needs=f"openml/{SETS[data].file}; {SKLEARN.install}",
        check=lambda: _check(data),
        store=lambda: curve_store(data),
    )


def _check(data: str) -> None:
    SKLEARN.check()
    load_set(data)


ENTRIES: dict[str, Entry] = {
    **{f"mlp_epochs_{data}": _entry(data) for data in DATA},
    **{f"mlp_epochs_{data}_noisy": _entry(data, ", noisy", "_noisy") for data in NOISY},
    **{f"mlp_epochs_{data}_lying": _entry(data, ", early ones mislead", "_lying")
       for data in LYING},
}  # fmt: skip
