"""Noisy problems, with noise as in training, scored by the configs that methods return.

Each is another problem of the registry plus noise. `nas_proxy` and `nas_proxy_other`, which have no
noise-free counterpart, belong to the same group. Learners are evaluated on one random split into
folds per evaluation; their truth is the mean over ten other splits.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from nasbo.bench.problem import Config, Problem
from nasbo.bench.problems import blocks, branches, jenatton, learners, nas_tables, pipelines
from nasbo.bench.problems.entry import Entry, Half
from nasbo.bench.problems.noise import own_stream, with_noise, with_own_stream
from nasbo.bench.problems.store import Store
from nasbo.bench.problems.tuning import Family

GROUP = "noisy"
N_TRUE_SPLITS = 10
N_SPLITS = 2**31
"""Number of splits to draw from. Their seeds start at ``N_TRUE_SPLITS``, so
none is part of the truth."""
SIGNALS = {
    "jenatton_small_shifted": 0.639,
    "jenatton_large_shifted": 0.643,
    "blocks": 0.302,
    "share": 1.061,
}
"""Standard deviation of the true values of 40,000 configs, drawn by ``Space.sample`` with
``default_rng(0)``; its relative standard error is below 0.4 %."""


def split_problem(family: Family, data: str) -> Problem:
    """Learners on a data set, with a random split for each evaluation."""
    name = f"{family.name}_{data}_noisy"
    space, store = family.space(), split_store(family, data)

    def measured(config: Config, splits: range, word: str) -> float:
        own = space.canonical(config)
        key = f"{json.dumps(own, sort_keys=True)} {word}"
        return store.value(key, lambda: family.measure(own, data, splits))

    def evaluate(config: Config, rng: np.random.Generator) -> float:
        split = N_TRUE_SPLITS + int(own_stream(name, rng).integers(N_SPLITS))
        return measured(config, range(split, split + 1), f"split {split}")

    def truth(config: Config) -> float:
        return measured(config, range(N_TRUE_SPLITS), "truth")

    return Problem(
        name, space, evaluate, truth, version=family.version, is_returned=True, is_truth_costly=True
    )


def split_store(family: Family, data: str) -> Store:
    """Store of values on single splits and of true values."""
    stored = family.store(data)
    return replace(stored, name=f"{family.name}_{data}_noisy-{family.version}")


def _split_entry(family: Family, data: str, half: Half) -> Entry:
    plain = family.entries()[f"{family.name}_{data}"]
    return replace(
        plain,
        make=lambda: split_problem(family, data),
        group=GROUP,
        half=half,
        summary=f"{plain.summary}, a random split into folds each time",
        store=lambda: split_store(family, data),
    )


def _signal_entry(plain: Entry, base: str, share: float, half: Half) -> Entry:
    """Entry of a problem whose noise is a share of the standard deviation of its signal."""
    name, deviation = f"{base}_noisy", share * SIGNALS[base]
    return replace(
        plain,
        make=lambda: with_noise(plain.make(), name, deviation),
        group=GROUP,
        half=half,
        summary=f"{base}, noise {share:g} of the signal",
    )


def _table_entry(plain: Entry, base: str, half: Half) -> Entry:
    return replace(
        plain,
        make=lambda: with_own_stream(plain.make(), f"{base}_noisy"),
        group=GROUP,
        half=half,
        summary=f"{base}, one training run each time",
    )


_CASH_LOG = next(family for family in learners.FAMILIES if family.name == "cash_log")
_SPLITS: tuple[tuple[Family, str, Half], ...] = (
    (_CASH_LOG, "diabetes", "tuning"),
    (_CASH_LOG, "steel", "held-out"),
    (pipelines.FAMILY, "diabetes", "tuning"),
    (pipelines.FAMILY, "monks2", "held-out"),
)
_SIGNAL_SHARES: tuple[tuple[str, float, Half], ...] = (
    ("jenatton_small_shifted", 0.1, "tuning"),
    ("jenatton_large_shifted", 0.1, "held-out"),
    ("blocks", 0.3, "tuning"),
    ("share", 0.3, "held-out"),
)
_TABLES: tuple[tuple[str, Half], ...] = (
    ("nasbench201_cifar10", "tuning"),
    ("nasbench201_cifar100", "held-out"),
)
_PLAIN = {**jenatton.ENTRIES, **blocks.ENTRIES, **branches.ENTRIES}

ENTRIES: dict[str, Entry] = {
    **{f"{base}_noisy": _table_entry(nas_tables.ENTRIES[base], base, half)
       for base, half in _TABLES},
    **{f"{family.name}_{data}_noisy": _split_entry(family, data, half)
       for family, data, half in _SPLITS},
    **{f"{base}_noisy": _signal_entry(_PLAIN[base], base, share, half)
       for base, share, half in _SIGNAL_SHARES},
}  # fmt: skip
