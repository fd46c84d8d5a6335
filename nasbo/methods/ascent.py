"""A box, a score and starts come in; the rows of the largest score go out, best first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from nasbo.space import Slot, Subspace

Array = NDArray[np.float64]
Score = Callable[[Tensor], Tensor]
"""Rows, shape (n, n_columns), to scores, shape (n,), differentiable in the rows."""

CLIMBED = 2
MAX_CLIMB = 25
"""So many one-change steps a climb may take."""
POLISHED = 3
ITERATIONS = 30


@dataclass(frozen=True)
class Region:
    """Where to stay: a box for all columns, and at most ``radius`` changed columns of a centre.

    Attributes:
        low: smallest values, shape (n_columns,).
        high: largest values, shape (n_columns,).
        centre: the row from which changes are counted, shape (n_columns,).
        counted: the columns in which they are counted, shape (k,).
        radius: how many of them may differ.
    """

    low: Array
    high: Array
    centre: Array
    counted: NDArray[np.intp]
    radius: int

    @classmethod
    def everywhere(cls, n_columns: int) -> Region:
        """No restriction."""
        zeros, ones = np.zeros(n_columns), np.ones(n_columns)
        return cls(zeros, ones, zeros, np.zeros(0, dtype=np.intp), 0)

    def contains(self, x: Array) -> NDArray[np.bool_]:
        """Which rows of ``x``, shape (n, n_columns), lie inside: shape (n,)."""
        slack = 1e-9
        inside = ((x >= self.low - slack) & (x <= self.high + slack)).all(1)
        changed = (np.abs(x[:, self.counted] - self.centre[self.counted]) > slack).sum(1)
        return np.asarray(inside & (changed <= self.radius))


def box_of(slots: Sequence[Slot]) -> Subspace:
    """The box of some parameters alone."""
    return Subspace(0, tuple(slots), {})


def maximise_score(
    box: Subspace, score: Score, starts: Array, region: Region | None = None, rounds: int = 3
) -> tuple[Array, Array]:
    """Different rows with large scores, best first, and their scores.

    Climbs over one-change neighbours and gradient ascent over the numbers take turns.

    Args:
        box: where the rows live.
        score: what is to be large.
        starts: shape (n, n_columns), inside the region; they are among what comes back.
        region: where to stay, if not everywhere.
        rounds: how many turns at most.
    """
    region = region or Region.everywhere(box.n_free)
    x, scores = starts, evaluate(score, starts)
    for _ in range(rounds):
        order = np.argsort(-scores, kind="stable")
        x, scores = x[order], scores[order]
        before = scores[0]
        for step in (_climb, _polish):
            found, values = step(_Pool(box, x, scores), score, region)
            x, scores = np.concatenate([x, found]), np.concatenate([scores, values])
            order = np.argsort(-scores, kind="stable")
            x, scores = x[order], scores[order]
        if scores[0] <= before + 1e-6 * abs(before):
            break
    _, first = np.unique(x, axis=0, return_index=True)
    different = np.sort(first)
    return x[different], scores[different]


def maximise_columns(
    subspace: Subspace, row: Array, columns: Sequence[int], score: Score, starts: Array
) -> tuple[Array, Array]:
    """The same over some columns of a subspace's row; the others are held.

    Args:
        subspace: of the row.
        row: shape (n_free,).
        columns: those that may change.
        score: of whole rows, shape (n, n_free).
        starts: of the columns, shape (n, len(columns)).

    Returns:
        Whole rows, best first, and their scores.
    """
    places, base = torch.tensor(columns, dtype=torch.long), torch.from_numpy(row[None])

    def whole(part: Tensor) -> Tensor:
        return base.expand(len(part), -1).index_copy(1, places, part)

    box = box_of([subspace.free[column] for column in columns])
    x, scores = maximise_score(box, lambda part: score(whole(part)), starts)
    return whole(torch.from_numpy(x)).numpy(), scores


def evaluate(score: Score, x: Array) -> Array:
    """Scores of rows without gradients, shape (n,)."""
    if not len(x):
        return np.zeros(0)
    with torch.no_grad():
        return np.asarray(score(torch.from_numpy(x)).numpy(), dtype=np.float64)


@dataclass(frozen=True)
class _Pool:
    """Rows of a box, best first, and their scores."""

    box: Subspace
    x: Array
    scores: Array


def _climb(pool: _Pool, score: Score, region: Region) -> tuple[Array, Array]:
    """One-change neighbours of the best rows, then of the best of those while scores rise."""
    n = CLIMBED if len(pool.box.discrete) else 0
    tops = list(zip(pool.x[:n], pool.scores[:n], strict=True))
    rows, values = [pool.x[:0]], [pool.scores[:0]]
    for _ in range(MAX_CLIMB):
        near = [pool.box.neighbours(row) for row, _ in tops]
        near = [some[region.contains(some)] for some in near]
        if not sum(map(len, near)):
            break
        found = evaluate(score, np.concatenate(near))
        rows += near
        values.append(found)
        parts = np.split(found, np.cumsum([len(some) for some in near])[:-1])
        tops = [
            (some[np.argmax(part)], part.max())
            for some, part, (_, height) in zip(near, parts, tops, strict=True)
            if len(part) and part.max() > height
        ]
    return np.concatenate(rows), np.concatenate(values)


def _polish(pool: _Pool, score: Score, region: Region) -> tuple[Array, Array]:
    """The best rows after gradient ascent over their continuous columns."""
    box, x = pool.box, pool.x
    if not len(box.smooth):
        return x[:0], pool.scores[:0]
    base = torch.from_numpy(x[:POLISHED].copy())
    columns = torch.from_numpy(box.smooth)
    shape = (len(base), len(box.smooth))

    def loss(flat: Array) -> tuple[float, Array]:
        free = torch.from_numpy(np.array(flat)).view(shape).requires_grad_()
        value = -score(base.index_copy(1, columns, free)).sum()
        (gradient,) = torch.autograd.grad(value, free)
        return float(value.detach()), gradient.numpy().ravel()

    bounds = list(zip(region.low[box.smooth], region.high[box.smooth], strict=True))
    end = minimize(
        loss,
        base[:, columns].numpy().ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds * shape[0],
        options={"maxiter": ITERATIONS, "maxfun": int(1.3 * ITERATIONS)},
    ).x
    moved = base.index_copy(1, columns, torch.from_numpy(end).view(shape))
    found = box.snap(moved.numpy())
    found = found[region.contains(found)]
    return found, evaluate(score, found)
