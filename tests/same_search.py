"""Suggestions of every method on six histories, to compare two versions of the code.

Arithmetic differs from machine to machine, so both versions must run on the same one:

    git worktree add ../before COMMIT
    PYTHONPATH=../before python tests/same_search.py before.json
    PYTHONPATH=.         python tests/same_search.py after.json
    python tests/same_search.py --compare before.json after.json

It uses only what ``nasbo.Search`` offers, so that it runs with older code, too.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

import nasbo
from nasbo.methods import METHODS

UNIT = {"type": "float", "range": [0, 1]}
FLAT = {
    "x": UNIT,
    "rate": {"type": "float", "range": [0.001, 1], "log": True},
    "n": {"type": "int", "range": [0, 9]},
    "c": {"type": "choice", "range": ["a", "b", "c"]},
}
TREE = {
    "top": {
        "type": "choice",
        "range": ["left", "right", "none"],
        "submodule": {
            "left": {
                "turn": {
                    "type": "int",
                    "range": [0, 2],
                    "submodule": {0: {"gamma": UNIT}, 1: {"delta": UNIT, "gamma": UNIT}},
                }
            },
            "right": {"gamma": UNIT, "size": {"type": "powerint2", "range": [3, 7]}},
        },
    },
    "rate": {"type": "float", "range": [0.001, 1], "log": True},
}
BLOCKS = {
    "n": {
        "type": "int",
        "range": [1, 4],
        "submodule": {"width": UNIT, "op": {"type": "choice", "range": ["a", "b", "c"]}},
    },
    "rate": UNIT,
}
HISTORIES: dict[str, tuple[Any, int]] = {
    "flat": (FLAT, 14),
    "tree": (TREE, 16),
    "blocks": (BLOCKS, 16),
    "many": ("nas_cifar10_conditional", 26),
    "limits": (TREE, 16),
    "pending": (TREE, 16),
}


def value(subspace: Any, config: dict[str, Any]) -> float:
    """A smooth function of the unit cube, another one for each subspace."""
    x = subspace.encode(config)
    wanted = 0.3 + 0.1 * (subspace.index % 4)
    return float(((x - wanted) ** 2).sum()) + math.sin(subspace.index)


def rate_is_low(config: dict[str, Any]) -> bool:
    """The limit of the history ``limits``."""
    return bool(config["rate"] <= 0.3)


def make_search(history: str, method: str, mode: str) -> Any:
    """A search with results, and for ``pending`` with running and failed trials."""
    space, n = HISTORIES[history]
    limits = {"limits": rate_is_low} if history == "limits" else {}
    search = nasbo.Search(space, method, mode, seed=5, **limits)
    rng, sign = np.random.default_rng(7), 1.0 if mode == "min" else -1.0
    if history == "pending":
        trials = search.ask(8)
        for trial, cause in zip(trials[:3], ("diverged", "crashed", "lost"), strict=True):
            search.tell(trial, error=cause)
    while sum(trial.source == "observed" for trial in search.trials) < n:
        config = search.space.sample(rng)
        subspace = search.space.subspace_of(config)
        search.observe(config, sign * value(subspace, config))
    return search


def record(file: Path, methods: list[str]) -> None:
    """Write what every method suggests: one config, then four at once."""
    found: dict[str, Any] = {}
    for method in methods:
        for number, history in enumerate(HISTORIES):
            search = make_search(history, method, ("min", "max")[number % 2])
            trials = [*search.ask(1), *search.ask(4)]
            found[f"{method}/{history}"] = [
                {
                    "config": trial.config,
                    "source": trial.source,
                    "info": {k: v for k, v in trial.info.items() if k != "fit_s"},
                }
                for trial in trials
            ]
        print(method, file=sys.stderr, flush=True)
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def compare(before: Path, after: Path) -> int:
    """Print where two records differ; the number of differences."""
    one, other = (json.loads(file.read_text(encoding="utf-8")) for file in (before, after))
    names = sorted(set(one) | set(other))
    differing = [name for name in names if one.get(name) != other.get(name)]
    for name in differing:
        print(f"differs: {name}")
    print(f"{len(names) - len(differing)} of {len(names)} records are equal to the last bit")
    return len(differing)


if __name__ == "__main__":
    if sys.argv[1] == "--compare":
        sys.exit(min(compare(Path(sys.argv[2]), Path(sys.argv[3])), 1))
    record(Path(sys.argv[1]), sys.argv[2:] or sorted(METHODS))
