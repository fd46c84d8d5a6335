"""A small mixed space with a score, data of it and a fitted model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nasbo.acquisition import ACQUISITIONS, Avoided, Chooser, Found
from nasbo.acquisition.optimise import IsTaken
from nasbo.history.data import Data
from nasbo.space import Config, Space, Subspace
from nasbo.surrogates.structured import StructuredGP

Array = NDArray[np.float64]
NUMBER = {"type": "float", "range": [0, 1]}
MIXED = {
    "kind": {
        "type": "choice",
        "range": ["a", "b"],
        "submodule": {
            "a": {"rate": NUMBER, "size": {"type": "int", "range": [1, 101]}},
            "b": {"rate": NUMBER, "steps": {"type": "int", "range": [1, 1000], "log": True}},
        },
    },
    "width": {"type": "powerint2", "range": [4, 8]},
    "mode": {"type": "choice", "range": ["x", "y", "z"]},
}


def score(config: Config) -> float:
    wide = np.log2(config.get("width", 32)) - 5
    return -((config.get("rate", 0.5) - 0.7) ** 2) * 4 - wide**2 - (config.get("mode") == "x")


def observed(space: Space, n: int = 12, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    configs = [space.sample(rng) for _ in range(n)]
    subspaces = [space.subspace_of(config) for config in configs]
    x = [s.encode(c) for s, c in zip(subspaces, configs, strict=True)]
    return Data(space, subspaces, x, np.array([score(c) for c in configs]), n)


def fitted(space: Space, seen: Data) -> StructuredGP:
    model = StructuredGP(space)
    model.fit(seen)
    return model


def never(subspace: Subspace, x: Array) -> bool:
    return False


def choose(
    space: Space, acquisition: str, n: int, data: Data, is_taken: IsTaken = never
) -> list[Found]:
    """What is chosen under a fitted structured GP."""
    model = fitted(space, data)
    chooser = Chooser(space, data, np.random.default_rng(0), Avoided(is_taken))
    return chooser.choose(ACQUISITIONS[acquisition]().prepare(model, data), model, n)
