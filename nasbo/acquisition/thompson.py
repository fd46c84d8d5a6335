"""Thompson sampling."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from nasbo.acquisition.base import Acquisition, Score
from nasbo.acquisition.improvement import LogEI
from nasbo.history.data import Data
from nasbo.space import Subspace
from nasbo.surrogates.base import Surrogate

Array = NDArray[np.float64]

MAX_ROWS = 600


class Thompson(Acquisition):
    """The maximisers of functions drawn from the posterior, on a set of configs."""

    name: ClassVar[str] = "draw"

    def __init__(self) -> None:
        self._improvement = LogEI()

    def prepare(self, surrogate: Surrogate, data: Data) -> Self:
        self._improvement.prepare(surrogate, data)
        return self

    def under(self, surrogate: Surrogate) -> Score:
        """log-EI: draws are no score by which subspaces could be told apart one by one."""
        return self._improvement.under(surrogate)

    def choose(
        self,
        surrogate: Surrogate,
        rows: list[tuple[Subspace, Array]],
        rng: Generator,
        n: int,
    ) -> list[tuple[Subspace, Array, float]]:
        """The best row of each of ``n`` functions, no row twice, with its value there.

        Args:
            surrogate: fitted.
            rows: which may be chosen, shape (n_free,) each; at most ``MAX_ROWS`` of them, drawn.
            rng: for all draws.
            n: how many.
        """
        rows = [rows[at] for at in rng.permutation(len(rows))[:MAX_ROWS]]
        with torch.no_grad():
            batches = [(subspace, torch.from_numpy(x[None])) for subspace, x in rows]
            mean, covariance = surrogate.joint_posterior(batches)
        return _pick(rows, draw(mean.numpy(), covariance.numpy(), rng, n))


def draw(mean: Array, covariance: Array, rng: Generator, n: int) -> Array:
    """``n`` draws, shape (n, m), given a mean, (m,), and a covariance, (m, m)."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws: Array = mean + rng.standard_normal((n, len(mean))) @ root.T
    return draws


def _pick(rows: list[tuple[Subspace, Array]], draws: Array) -> list[tuple[Subspace, Array, float]]:
    found = []
    free = np.ones(len(rows), dtype=bool)
    for values in draws:
        if not free.any():
            break
        best = int(np.argmax(np.where(free, values, -np.inf)))
        home, row = rows[best]
        same = [s.index == home.index and np.array_equal(x, row) for s, x in rows]
        free &= ~np.array(same)
        found.append((home, row, float(values[best])))
    return found
