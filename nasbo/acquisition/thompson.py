"""Thompson sampling on a set of configs."""

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
    """Maximisers, over a set of configs, of functions drawn from the posterior."""

    name: ClassVar[str] = "draw"

    def __init__(self) -> None:
        self._improvement = LogEI()

    def prepare(self, surrogate: Surrogate, data: Data) -> Self:
        self._improvement.prepare(surrogate, data)
        return self

    def under(self, surrogate: Surrogate) -> Score:
        """log-EI, which ranks subspaces here: a draw is no score of a single row."""
        return self._improvement.under(surrogate)

    def choose(
        self,
        surrogate: Surrogate,
        rows: list[tuple[Subspace, Array]],
        rng: Generator,
        n: int,
    ) -> list[tuple[Subspace, Array, float]]:
        """The maximisers of ``n`` drawn functions, no row twice, with the functions' values there.

        Args:
            surrogate: fitted.
            rows: the rows to choose from, (n_free,) each; a sample of ``MAX_ROWS`` if there are
                more.
            rng: for all draws.
            n: number of functions.
        """
        rows = [rows[at] for at in rng.permutation(len(rows))[:MAX_ROWS]]
        with torch.no_grad():
            batches = [(subspace, torch.from_numpy(x[None])) for subspace, x in rows]
            mean, covariance = surrogate.joint_posterior(batches)
        return _pick(rows, draw(mean.numpy(), covariance.numpy(), rng, n))


def draw(mean: Array, covariance: Array, rng: Generator, n: int) -> Array:
    """``n`` samples, shape (n, m), of a normal with given mean, (m,), and covariance, (m, m)."""
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
