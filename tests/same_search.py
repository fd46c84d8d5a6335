"""Suggestions of all methods and posteriors of all surrogates on six
histories, to compare versions.

Arithmetic differs from machine to machine, so both versions must run on the same one:

    git worktree add ../before COMMIT
    PYTHONPATH=../before python tests/same_search.py before.json
    PYTHONPATH=.         python tests/same_search.py after.json
    python tests/same_search.py --compare before.json after.json

It uses only what ``nasbo.Search`` and surrogates offer, so that it runs with older code, too.
"""

from __future__ import annotations

import importlib
import itertools
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import nasbo
from nasbo.history.data import Data
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

SURROGATES = {
    "structured": "nasbo.surrogates.structured:StructuredGP",
    "attention": "nasbo.surrogates.attention:AttentionGP",
    "add_tree": "nasbo.surrogates.add_tree:AddTreeGP",
    "tree": "nasbo.surrogates.tree:TreeGP",
    "mixed": "nasbo.surrogates.mixed:MixedGP",
    "arc": "nasbo.surrogates.arc:ArcGP",
    "one_hot": "nasbo.surrogates.one_hot:OneHotGP",
    "independent": "nasbo.surrogates.independent:IndependentGPs",
}
VARIANTS: dict[str, tuple[str, dict[str, str]]] = {
    "addtree ucb": ("addtree", {"acquisition": "ucb"}),
    "tree full": ("tree", {"acquisition": "full"}),
    "tree fourier": ("tree", {"basis": "fourier"}),
    "attnbo thompson": ("attnbo", {"acquisition": "thompson"}),
    "attnbo alone": ("attnbo", {"attention": "off"}),
    "attnbo paper": ("attnbo", {"preset": "paper"}),
}
N_ROWS = 24
TOLERANCE = 1e-8


def value(subspace: Any, config: dict[str, Any]) -> float:
    """A smooth function on the unit cube, different for each subspace."""
    x = subspace.encode(config)
    wanted = 0.3 + 0.1 * (subspace.index % 4)
    return float(((x - wanted) ** 2).sum()) + math.sin(subspace.index)


def rate_is_low(config: dict[str, Any]) -> bool:
    """The limit of the history ``limits``."""
    return bool(config["rate"] <= 0.3)


def make_search(history: str, name: str, mode: str) -> Any:
    """A search with results and, for ``pending``, with running and failed trials."""
    space, n = HISTORIES[history]
    method, options = VARIANTS.get(name, (name, {}))
    limits: dict[str, Any] = {"limits": rate_is_low} if history == "limits" else {}
    search = nasbo.Search(space, method, mode, seed=5, **limits, **options)
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


def record(file: Path, names: list[str]) -> None:
    """Write the suggestions of every method and the predictions of every surrogate."""
    found: dict[str, Any] = {}
    for name in names:
        found |= record_surrogate(name) if name in SURROGATES else {}
        found |= record_method(name) if name in METHODS or name in VARIANTS else {}
        print(name, file=sys.stderr, flush=True)
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def record_surrogate(name: str) -> dict[str, Any]:
    """Posteriors at rows of many subspaces: marginal, joint, gradients,
    and with pending configs.
    """
    found: dict[str, Any] = {}
    module, _, attribute = SURROGATES[name].partition(":")
    for history in HISTORIES:
        search = make_search(history, "random", "max")
        rows = search.history.rows()
        surrogate = getattr(importlib.import_module(module), attribute)(search.space)
        surrogate.fit(Data.of_trials(search.space, rows))
        rng = np.random.default_rng(11)
        configs = [search.space.sample(rng) for _ in range(N_ROWS)]
        homes = [search.space.subspace_of(config) for config in configs]
        x = [home.encode(config) for home, config in zip(homes, configs, strict=True)]
        leaves = [torch.from_numpy(row[None]).requires_grad_() for row in x]
        batches = list(zip(homes, leaves, strict=True))
        mean, variance = surrogate.posteriors(batches)
        slopes = torch.autograd.grad((mean + variance).sum(), leaves, allow_unused=True)
        with torch.no_grad():
            joint = surrogate.joint_posterior(batches)
            pending = surrogate.with_pending(homes[:5], x[:5]).posteriors(batches[5:])
        found[f"surrogate {name}/{history}"] = {
            "mean": mean.tolist(),
            "variance": variance.tolist(),
            "slopes": [None if slope is None else slope.tolist() for slope in slopes],
            "joint": [part.tolist() for part in joint],
            "pending": [part.tolist() for part in pending],
        }
    return found


def record_method(method: str) -> dict[str, Any]:
    """Suggestions of a method: one config, then four at once."""
    found: dict[str, Any] = {}
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
    return found


def compare(before: Path, after: Path) -> int:
    """Print where two records differ; returns how many differ by more than ``TOLERANCE``."""
    one, other = (json.loads(file.read_text(encoding="utf-8")) for file in (before, after))
    names = sorted(set(one) | set(other))
    gaps = {name: gap(one.get(name), other.get(name)) for name in names}
    for name, size in gaps.items():
        if size:
            print(f"{name}: {size:.1e}" if math.isfinite(size) else f"{name}: other values")
    n_equal, n_close = (sum(size <= bound for size in gaps.values()) for bound in (0, TOLERANCE))
    print(f"of {len(names)} records {n_equal} are equal to the last bit, {n_close} to 1e-8")
    return len(names) - n_close


def gap(one: Any, other: Any) -> float:
    """Largest relative difference of the numbers in two values; infinite if other parts differ."""
    left, right = (list(leaves(some)) for some in (one, other))
    if len(left) != len(right):
        return math.inf
    worst = 0.0
    for a, b in zip(left, right, strict=True):
        if isinstance(a, float) and isinstance(b, float):
            worst = max(worst, abs(a - b) / max(abs(a), abs(b), 1e-3) if a != b else 0.0)
        elif a != b:
            return math.inf
    return worst


def leaves(tree: Any) -> Iterator[Any]:
    """Keys and values of nested dicts and lists, one after the other."""
    if isinstance(tree, dict):
        tree = [part for pair in tree.items() for part in pair]
    if isinstance(tree, list):
        yield from itertools.chain.from_iterable(map(leaves, tree))
    else:
        yield tree


if __name__ == "__main__":
    if sys.argv[1] == "--compare":
        sys.exit(min(compare(Path(sys.argv[2]), Path(sys.argv[3])), 1))
    record(
        Path(sys.argv[1]), sys.argv[2:] or list(dict.fromkeys([*SURROGATES, *METHODS, *VARIANTS]))
    )
