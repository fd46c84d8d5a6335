"""Shared search of the tests of methods, on Jenatton's function."""

from __future__ import annotations

from typing import Any

from nasbo.bench.addtree_regression import SMALL_BALANCED as SMALL
from nasbo.bench.addtree_regression import small_balanced as jenatton
from nasbo.search import Search

__all__ = ["SMALL", "jenatton", "searched"]


def searched(method: str, n: int, seed: int = 0, **options: Any) -> Search:
    """A search of Jenatton's function after ``n`` trials, one at a time after the design."""
    search = Search(SMALL, method=method, mode="min", seed=seed, **options)
    for trial in search.ask(8):
        search.tell(trial, jenatton(trial.config))
    for _ in range(n - 8):
        (trial,) = search.ask(1)
        search.tell(trial, jenatton(trial.config))
    return search
