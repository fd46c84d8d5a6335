"""Small function with one good value of each kind."""

from __future__ import annotations

import numpy as np

from nasbo.search import Search
from nasbo.space import Config

SPACE = {"x": {"type": "float", "range": [0, 1]}, "c": {"type": "choice", "range": ["a", None]}}

UNIT = {"type": "float", "range": [0, 1]}
TREE = {
    "k": {
        "type": "choice",
        "range": ["a", "b"],
        "submodule": {"a": {"x": UNIT, "y": UNIT}, "b": {"x": UNIT, "y": UNIT, "z": UNIT}},
    }
}


def few(config: Config) -> bool:
    """Whether a config of the tree is among the eighth that the limits allow."""
    return bool(config["x"] ** 2 + config["y"] ** 2 < 0.153)


def check_few_are_found(search: Search, n: int) -> None:
    """The best scores are outside of the limits, and still the method
    itself suggests all configs.
    """
    for _ in range(4 + n):
        (trial,) = search.ask(1)
        search.tell(trial, -trial.config["x"] - trial.config["y"])
    assert [trial.source for trial in search.trials] == ["design"] * 4 + ["model"] * n


def check_good_values_are_asked_for(search: Search) -> None:
    """After twenty of forty trials most configs are near the optimum."""
    for _ in range(40):
        (trial,) = search.ask(1)
        penalty = 0.0 if trial.config["c"] is None else 1.0
        search.tell(trial, (trial.config["x"] - 0.2) ** 2 + penalty)
    late = search.trials[20:]
    assert sum(trial.config["c"] is None for trial in late) > 14
    assert np.median([abs(trial.config["x"] - 0.2) for trial in late]) < 0.2
