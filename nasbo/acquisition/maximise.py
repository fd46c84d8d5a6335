"""A fitted surrogate and subspaces come in; the best untried config of each goes out.

All subspaces go through the same steps at once: many starts, a climb over one-change neighbours,
then gradient ascent (L-BFGS-B) over the continuous part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from nasbo.acquisition.improvement import log_ei, score_rows
from nasbo.history.data import Data
from nasbo.space import Subspace
from nasbo.surrogates.base import Batches, Surrogate

Array = NDArray[np.float64]
IsTaken = Callable[[Subspace, Array], bool]
Allows = Callable[[Subspace, Array], bool]

CLIMBED = 2
CLIMB_ROUNDS = 3
POLISHED = 3
POLISH_ITERATIONS = 30
REDRAWS = 8
"""How often starts are drawn again where limits leave too few."""
TWIN = 0.02
FLOOR = -60.0
"""log-EI below this has no useful gradient left."""


@dataclass(frozen=True)
class Starts:
    """How many rows each subspace starts from."""

    uniform: int = 96
    around_own_best: int = 16
    around_best: int = 40
    projected: int = 4


@dataclass(frozen=True)
class Found:
    """A config of a subspace, its score, and whether it is there to visit the subspace."""

    subspace: Subspace
    x: Array
    score: float
    is_visit: bool = False


class Batch:
    """Configs that are chosen or running: their near-twins are not worth a training of their own.

    A near-twin lies in the same subspace and differs by less than ``TWIN`` of the range in every
    parameter.

    Args:
        is_taken: whether a config must not be suggested for another reason.
        subspaces: of the configs that are running.
        x: their places in the unit cube.
    """

    def __init__(
        self, is_taken: IsTaken, subspaces: Sequence[Subspace] = (), x: Sequence[Array] = ()
    ) -> None:
        self._is_taken = is_taken
        self._rows: dict[int, list[Array]] = {}
        for subspace, row in zip(subspaces, x, strict=True):
            self.add(subspace, row)

    def add(self, subspace: Subspace, x: Array) -> None:
        """Take one more, shape (n_free,)."""
        self._rows.setdefault(subspace.index, []).append(x)

    def __call__(self, subspace: Subspace, x: Array) -> bool:
        rows = self._rows.get(subspace.index)
        is_twin = rows is not None and (np.abs(np.array(rows) - x) < TWIN).all(axis=1).any()
        return bool(is_twin) or self._is_taken(subspace, x)


@dataclass
class _Pool:
    """Rows of one subspace with their scores, best first."""

    subspace: Subspace
    x: Array
    scores: Array

    def keep_best(self, n: int | None = None) -> None:
        order = np.argsort(-self.scores, kind="stable")[:n]
        self.x, self.scores = self.x[order], self.scores[order]

    def add(self, x: Array, scores: Array) -> None:
        self.x = np.concatenate([self.x, x])
        self.scores = np.concatenate([self.scores, scores])


def maximise_per_subspace(
    surrogate: Surrogate,
    subspaces: Sequence[Subspace],
    observations: Data,
    rng: Generator,
    is_taken: IsTaken,
    starts: Starts | None = None,
) -> list[Found]:
    """The config of the largest log-EI in each subspace, best first.

    Subspaces in which everything that was looked at is taken are left out.

    Args:
        surrogate: fitted, pending configs included.
        subspaces: where to look.
        observations: what the starts are drawn around.
        rng: for the starts.
        is_taken: whether a config must not be suggested; called with snapped rows.
        starts: how many starts, if not the usual number.
    """
    rows = starting_rows(subspaces, observations, rng, starts or Starts())
    scores = score_rows(surrogate, list(zip(subspaces, rows, strict=True)))
    pools = [_Pool(*parts) for parts in zip(subspaces, rows, scores, strict=True)]
    for pool in pools:
        pool.keep_best()
    _climb(surrogate, pools, is_taken)
    _polish(surrogate, pools)
    found = [_best_untaken(pool, is_taken) for pool in pools]
    return sorted((f for f in found if f is not None), key=lambda f: -f.score)


def starting_rows(
    subspaces: Sequence[Subspace], observations: Data, rng: Generator, starts: Starts
) -> list[Array]:
    """Rows to start from: uniform ones, around the best of the subspace, around the best of all."""
    home = np.array([subspace.index for subspace in observations.subspaces])
    order = np.argsort(-observations.scores, kind="stable")
    rows = []
    for subspace in subspaces:
        parts = [subspace.candidates(starts.uniform, rng)]
        for row in order[home[order] == subspace.index][:3]:
            n = starts.around_best if row in order[:3] else starts.around_own_best
            parts.append(subspace.perturb(np.repeat(observations.x[row][None], n, 0), rng))
        for row in order[:3]:
            if home[row] != subspace.index:
                there, x = observations.subspaces[row], observations.x[row]
                projected = subspace.project(there, x, starts.projected, rng)
                parts += [projected, subspace.perturb(projected, rng)]
        rows.append(np.concatenate(parts))
    if observations.allows is None:
        return rows
    return [_inside(s, x, observations.allows, rng) for s, x in zip(subspaces, rows, strict=True)]


def _inside(subspace: Subspace, x: Array, allows: Allows, rng: Generator) -> Array:
    """The rows inside the limits, and others drawn for those outside; all where none was met."""
    kept = [row for row in x if allows(subspace, row)]
    for _ in range(REDRAWS):
        if 2 * len(kept) >= len(x):
            break
        kept += [row for row in subspace.candidates(len(x), rng) if allows(subspace, row)]
    return np.array(kept[: len(x)]) if kept else x


def _climb(surrogate: Surrogate, pools: Sequence[_Pool], is_taken: IsTaken) -> None:
    """Replace the best rows by their best untaken one-change neighbours while that helps."""
    tops = [
        (pool, pool.x[at], float(pool.scores[at]))
        for pool in pools
        for at in range(min(CLIMBED, len(pool.x)))
        if len(pool.subspace.discrete)
    ]
    for _ in range(CLIMB_ROUNDS):
        near = [(pool.subspace, pool.subspace.neighbours(row)) for pool, row, _ in tops]
        better = []
        for (pool, _, score), (subspace, x), s in zip(
            tops, near, score_rows(surrogate, near), strict=True
        ):
            for at in np.argsort(-s, kind="stable"):
                if s[at] <= score:
                    break
                if not is_taken(subspace, x[at]):
                    pool.add(x[at : at + 1], s[at : at + 1])
                    better.append((pool, x[at], float(s[at])))
                    break
        tops = better
        if not tops:
            break
    for pool in pools:
        pool.keep_best()


class _Ascent:
    """Gradient ascent over the continuous columns of the best rows of all pools at once."""

    def __init__(self, surrogate: Surrogate, pools: Sequence[_Pool]) -> None:
        self._surrogate = surrogate
        self._pools = pools
        self._bases = [torch.from_numpy(pool.x[:POLISHED].copy()) for pool in pools]
        self._columns = [torch.from_numpy(pool.subspace.smooth) for pool in pools]

    def run(self) -> list[tuple[Subspace, Array]]:
        """The rows after the ascent, snapped, by subspace."""
        parts = zip(self._bases, self._columns, strict=True)
        start = np.concatenate([base[:, columns].numpy().ravel() for base, columns in parts])
        end = minimize(
            self._loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, 1.0)] * len(start),
            options={"maxiter": POLISH_ITERATIONS, "maxfun": int(1.3 * POLISH_ITERATIONS)},
        ).x
        moved = self._rows(torch.from_numpy(end))
        return [(subspace, subspace.snap(x.numpy())) for subspace, x in moved]

    def _rows(self, flat: Tensor) -> Batches:
        batches, start = [], 0
        for pool, base, columns in zip(self._pools, self._bases, self._columns, strict=True):
            shape = (len(base), len(columns))
            part = flat[start : start + shape[0] * shape[1]].view(shape)
            batches.append((pool.subspace, base.index_copy(1, columns, part)))
            start += part.numel()
        return batches

    def _loss(self, flat: Array) -> tuple[float, Array]:
        free = torch.from_numpy(flat).requires_grad_()
        mean, variance = self._surrogate.posteriors(self._rows(free))
        score = log_ei(mean, variance, self._surrogate.incumbent())
        loss = -score.clamp_min(FLOOR).sum()
        (gradient,) = torch.autograd.grad(loss, free)
        return float(loss.detach()), gradient.numpy()


def _polish(surrogate: Surrogate, pools: Sequence[_Pool]) -> None:
    """Add the best rows after gradient ascent."""
    pools = [pool for pool in pools if len(pool.subspace.smooth) and len(pool.x)]
    if not pools:
        return
    polished = _Ascent(surrogate, pools).run()
    scores = score_rows(surrogate, polished)
    for pool, (_, x), score in zip(pools, polished, scores, strict=True):
        pool.add(x, score)
        pool.keep_best()


def _best_untaken(pool: _Pool, is_taken: IsTaken) -> Found | None:
    for row, score in zip(pool.x, pool.scores, strict=True):
        if not is_taken(pool.subspace, row):
            return Found(pool.subspace, row, float(score))
    return None
