"""Surrogate benchmark: validation error of block networks, predicted by an ensemble of trees.

The ensemble is fitted to ``nas_proxy.jsonl.xz``: the project's own trainings of 624 networks of
`nas_cifar10` by the recipe `proxy`, the configs of the searches on `cifar10_proxy`. In 5-fold
cross-validation it reaches a Spearman correlation of 0.92 and a root mean squared error of 0.0165,
about the noise between two trainings of one network. Each query adds noise of the size that
training has.

`nas_proxy` is fitted to all rows. `nas_proxy_other` is fitted to 70 % of them with another seed of
the ensemble, and has more noise.
"""

from __future__ import annotations

import json
import lzma
import math
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasbo.bench.problem import Config, Problem
from nasbo.bench.problems.ensemble import Ensemble, fit_ensemble
from nasbo.bench.problems.entry import Entry, Half
from nasbo.bench.problems.noise import with_noise
from nasbo.bench.problems.tuning import SKLEARN, XGBOOST
from nasbo.features import Features
from nasbo.space import load_space
from nasbo.trainer import TrainerSummary, TrainerTable

Array = NDArray[np.float64]

ROWS = "nas_proxy.jsonl.xz"
MAX_BLOCKS = 7
N_OPERATIONS = 4
LIGHT_OPERATIONS = (0, 1)


@dataclass(frozen=True)
class Variant:
    """One ensemble and its noise.

    Attributes:
        share: share of the rows that it is fitted to.
        seed: of the ensemble, and of the choice of rows if not all are used.
        noise: standard deviation of the noise.
        optimum: the least known prediction, rounded down at the sixth digit: from two hundred local
            searches over all changes of one value (241 learning rates) and exchanges of two blocks,
            started at random configs and at perturbed best results; two seeds agree. It has 5
            blocks, all of them inverted residuals.
    """

    half: Half
    share: float
    seed: int
    noise: float
    optimum: float
    summary: str


VARIANTS = {
    "nas_proxy": Variant(
        half="tuning",
        share=1.0,
        seed=0,
        noise=0.013,
        optimum=0.528312,
        summary="block networks by an ensemble of trees, noise 0.013",
    ),
    "nas_proxy_other": Variant(
        half="held-out",
        share=0.7,
        seed=1,
        noise=0.02,
        optimum=0.527289,
        summary="the same by another ensemble, of 70 % of the trainings, noise 0.02",
    ),
}


_TRAINER = "trainers.cifar10:train"
NETWORK_FEATURES = Features(TrainerSummary(_TRAINER, {}), tabulate=TrainerTable(_TRAINER, {}))
"""Sizes of block networks, as the shipped trainer knows them before a training."""


def read_rows() -> list[dict[str, Any]]:
    """The trainings: config, training seed, validation error, and the search that suggested it."""
    packed = files("nasbo.bench.problems").joinpath(ROWS).read_bytes()
    return [json.loads(line) for line in lzma.decompress(packed).decode().splitlines()]


def features(config: Config) -> list[float]:
    """Features for the ensemble: values of each block, then counts and means over blocks, (82,)."""
    n_blocks, layers, operations = config["nums_block"], config["nums_layer"], config["conv_op"]
    has_squeeze = [ratio > 0 for ratio in config["seratio"]]
    found = [n_blocks, config["stride_layer"] == 44, config["learning_rate"], config["step_size"]]
    found.append(math.log2(config["batch_size"]))
    for i in range(n_blocks):
        found += [operations[i] == kind for kind in range(N_OPERATIONS)]
        found += [config["kernel_size"][i], has_squeeze[i], layers[i]]
        found += [config["nums_channel"][i], config["expand_ratio"][i]]
    found += [0] * (N_OPERATIONS + 5) * (MAX_BLOCKS - n_blocks)
    depths = [n + 1 for n in layers]
    found += [sum(depths), sum(layers)]
    found += [operations.count(kind) for kind in range(N_OPERATIONS)]
    found += [_depth_of(depths, operations, (kind,)) for kind in range(N_OPERATIONS)]
    found += [_mean(config["kernel_size"]), _mean(has_squeeze), _mean(config["nums_channel"])]
    found.append(_depth_of(depths, operations, LIGHT_OPERATIONS))
    return [float(one) for one in found]


def _depth_of(depths: list[int], operations: list[int], kinds: tuple[int, ...]) -> int:
    """Number of layers in the blocks of some operations."""
    return sum(depth for depth, kind in zip(depths, operations, strict=True) if kind in kinds)


def _mean(values: list[Any]) -> float:
    return float(np.mean(values))


@lru_cache(maxsize=len(VARIANTS))
def ensemble(name: str) -> Ensemble:
    """The fitted ensemble of a variant; the fit takes about a second, once per process."""
    variant, rows = VARIANTS[name], read_rows()
    if variant.share < 1:
        order = np.random.default_rng(variant.seed).permutation(len(rows))
        rows = [rows[i] for i in np.sort(order[: round(variant.share * len(rows))])]
    X = np.array([features(row["config"]) for row in rows])
    return fit_ensemble(X, np.array([row["val_error"] for row in rows]), variant.seed)


def nas_proxy(name: str) -> Problem:
    """The problem of a variant."""
    variant, space = VARIANTS[name], load_space("nas_cifar10")

    def truth(config: Config) -> float:
        return float(ensemble(name).predict(np.array([features(config)]))[0])

    plain = Problem(
        name,
        space,
        lambda config, rng: truth(config),
        optimum=variant.optimum,
        features=NETWORK_FEATURES,
    )
    return with_noise(plain, name, variant.noise)


def _check() -> None:
    for package in (SKLEARN, XGBOOST):
        package.check()


def _entry(name: str) -> Entry:
    variant = VARIANTS[name]
    return Entry(
        make=lambda: nas_proxy(name),
        group="noisy",
        half=variant.half,
        summary=variant.summary,
        needs=f"{SKLEARN.install}, {XGBOOST.install}",
        check=_check,
    )


ENTRIES: dict[str, Entry] = {name: _entry(name) for name in VARIANTS}
