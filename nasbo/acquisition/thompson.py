"""A fitted surrogate comes in; the maximisers of functions drawn from its posterior go out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.random import Generator

from nasbo.acquisition.maximise import Found, IsTaken, Starts, starting_rows
from nasbo.history.data import Data
from nasbo.space import Subspace
from nasbo.surrogates.base import Surrogate

MAX_ROWS = 600


def thompson(
    surrogate: Surrogate,
    subspaces: Sequence[Subspace],
    observations: Data,
    rng: Generator,
    is_taken: IsTaken,
    n: int,
) -> list[Found]:
    """One config for each of ``n`` functions drawn from the posterior; no config twice.

    The functions are drawn on a set of configs of all the subspaces, at most ``MAX_ROWS``.
    """
    each = max(4, MAX_ROWS // (2 * len(subspaces)))
    starts = Starts(uniform=each, around_own_best=8, around_best=16, projected=1)
    drawn = starting_rows(subspaces, observations, rng, starts)
    rows = [
        (subspace, row)
        for subspace, x in zip(subspaces, drawn, strict=True)
        for row in x
        if not is_taken(subspace, row)
    ]
    if not rows:
        return []
    rows = [rows[at] for at in rng.permutation(len(rows))[:MAX_ROWS]]
    draws = _draw(surrogate, rows, rng, n)
    return _pick(rows, draws)


def _draw(
    surrogate: Surrogate, rows: Sequence[tuple[Subspace, np.ndarray]], rng: Generator, n: int
) -> np.ndarray:
    """Values of ``n`` functions, shape (n, n_rows)."""
    with torch.no_grad():
        batches = [(subspace, torch.from_numpy(x[None])) for subspace, x in rows]
        mean, covariance = surrogate.joint_posterior(batches)
    values, vectors = np.linalg.eigh(covariance.numpy())
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws: np.ndarray = mean.numpy() + rng.standard_normal((n, len(rows))) @ root.T
    return draws


def _pick(rows: Sequence[tuple[Subspace, np.ndarray]], draws: np.ndarray) -> list[Found]:
    found: list[Found] = []
    free = np.ones(len(rows), dtype=bool)
    for values in draws:
        if not free.any():
            break
        best = int(np.argmax(np.where(free, values, -np.inf)))
        same = [
            s.index == rows[best][0].index and np.array_equal(x, rows[best][1]) for s, x in rows
        ]
        free &= ~np.array(same)
        found.append(Found(rows[best][0], rows[best][1], float(values[best])))
    return found
