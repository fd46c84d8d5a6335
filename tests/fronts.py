"""A small space with an accuracy that is trained, and a size that is known before."""

from __future__ import annotations

import math
from typing import Any

from nasbo.search import Search
from nasbo.space import Config

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
