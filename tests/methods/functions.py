"""Objectives that the tests of the methods share."""

from __future__ import annotations

from typing import Any

from nasbo.search import Search
from nasbo.space import Config

UNIT: dict[str, Any] = {"type": "float", "range": [-1, 1]}
SHARED: dict[str, Any] = {"type": "float", "range": [0, 1]}


def _side(shared: str, choice: str, leaves: tuple[str, str]) -> dict[str, Any]:
    branches = {at: {leaf: UNIT} for at, leaf in enumerate(leaves)}
    return {shared: SHARED, choice: {"type": "choice", "range": [0, 1], "submodule": branches}}


SMALL: dict[str, Any] = {
    "x1": {
        "type": "choice",
        "range": [0, 1],
        "submodule": {0: _side("r8", "x2", ("x4", "x5")), 1: _side("r9", "x3", ("x6", "x7"))},
    }
}
"""Jenatton's small balanced function with continuous shared parameters."""


def jenatton(config: Config) -> float:
    """Its value: 0.1 at x4 = 0, r8 = 0."""
    inner = {"x4": 0.1, "x5": 0.2, "x6": 0.3, "x7": 0.4}
    (name,) = inner.keys() & config.keys()
    return float(config[name] ** 2 + inner[name] + config.get("r8", config.get("r9")))


def searched(method: str, n: int, seed: int = 0, **options: Any) -> Search:
    """A search of Jenatton's function after ``n`` trials, one at a time behind the design."""
    search = Search(SMALL, method=method, mode="min", seed=seed, **options)
    for trial in search.ask(8):
        search.tell(trial, jenatton(trial.config))
    for _ in range(n - 8):
        (trial,) = search.ask(1)
        search.tell(trial, jenatton(trial.config))
    return search
