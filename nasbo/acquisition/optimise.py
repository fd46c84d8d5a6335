"""Acquisition optimiser for mixed spaces, over many subspaces at once.

It alternates between hill climbing over one-change neighbours of the best rows and gradient ascent
(L-BFGS-B) over their continuous columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from nasbo.acquisition.base import Score
from nasbo.space import Subspace
from nasbo.surrogates.base import Batches

Array = NDArray[np.float64]
IsTaken = Callable[[Subspace, Array], bool]
Rows = Sequence[tuple[Subspace, Array]]

CHUNK = 256
"""Rows per pass through the surrogate. This bounds memory and hardly costs time."""
CLIMBED = 2
ASCENDED = 3
"""Number of best rows per subspace that start a climb (``CLIMBED``) and
an ascent (``ASCENDED``)."""
ITERATIONS = 30
FLOOR = -60.0
"""Lower clip of scores: a log-EI below has no useful gradient, and no other score is as low."""
SLACK = 1e-9
LEAST_GAIN = 1e-6


@dataclass(frozen=True)
class Region:
    """Trust region: a box, and a maximum number of columns that differ from a centre.

    Attributes:
        low: smallest values, shape (n_free,).
        high: largest values, shape (n_free,).
        centre: the row from which changes are counted, shape (n_free,).
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
        """The whole cube."""
        zeros, ones = np.zeros(n_columns), np.ones(n_columns)
        return cls(zeros, ones, zeros, np.zeros(0, dtype=np.intp), 0)

    def contains(self, x: Array) -> NDArray[np.bool_]:
        """Which rows of ``x``, shape (n, n_free), lie inside, as a mask of shape (n,)."""
        inside = ((x >= self.low - SLACK) & (x <= self.high + SLACK)).all(1)
        changed = (np.abs(x[:, self.counted] - self.centre[self.counted]) > SLACK).sum(1)
        return np.asarray(inside & (changed <= self.radius))


@dataclass(frozen=True)
class Effort:
    """Effort of the optimiser.

    Attributes:
        climbs: maximum number of steps of a climb.
        turns: maximum number of turns of climb and ascent; they end when a turn gains nothing.
        leaps: whether a step may combine several changes, each of which is a gain by itself; such
            steps replace one step per column.
        keeps_all: whether all scored neighbours are kept, not only the steps.
    """

    climbs: int = 10
    turns: int = 1
    leaps: bool = True
    keeps_all: bool = False


THOROUGH = Effort(climbs=25, turns=3, leaps=False, keeps_all=True)


@dataclass
class Pool:
    """Rows of one subspace with their scores; best first after ``sort``."""

    subspace: Subspace
    x: Array
    scores: Array
    region: Region

    def add(self, x: Array, scores: Array) -> None:
        self.x = np.concatenate([self.x, x])
        self.scores = np.concatenate([self.scores, scores])

    def sort(self) -> None:
        order = np.argsort(-self.scores, kind="stable")
        self.x, self.scores = self.x[order], self.scores[order]

    def best_untaken(self, is_taken: IsTaken) -> tuple[Array, float] | None:
        """The best row that may be suggested, and its score."""
        for row, score in zip(self.x, self.scores, strict=True):
            if not is_taken(self.subspace, row):
                return row, float(score)
        return None


Top = tuple[Pool, Array, float]
"""A row of a pool from which the climb continues, and its score."""


def maximise(
    score: Score,
    starts: Rows,
    effort: Effort = THOROUGH,
    regions: Sequence[Region] | None = None,
    is_taken: IsTaken = lambda subspace, x: False,
) -> list[Pool]:
    """Rows of large scores in each subspace, best first, the starts among them.

    Args:
        score: what is to be large.
        starts: rows of subspaces, shape (n, n_free) each, inside their regions.
        effort: how hard to look.
        regions: where to stay in each subspace, if not everywhere.
        is_taken: whether a row must not be suggested: a climb does not step on it.
    """
    regions = regions or [Region.everywhere(subspace.n_free) for subspace, _ in starts]
    scores = score_rows(score, starts)
    parts = zip(starts, scores, regions, strict=True)
    pools = [Pool(subspace, x, some, region) for (subspace, x), some, region in parts]
    active = pools
    for _ in range(effort.turns):
        for pool in active:
            pool.sort()
        before = [pool.scores[:1].copy() for pool in active]
        _climb(score, active, effort, is_taken)
        _ascend(score, active)
        active = [p for p, best in zip(active, before, strict=True) if _has_gained(p, best)]
    return pools


def joined(batches: Batches) -> Tensor:
    """Concatenate the rows of batches of one subspace, shape (n, n_free)."""
    return torch.cat([x for _, x in batches])


def _has_gained(pool: Pool, before: Array) -> bool:
    return bool((pool.scores[:1] > before + LEAST_GAIN * np.abs(before)).all()) and len(pool.x) > 0


def score_rows(score: Score, rows: Rows) -> list[Array]:
    """Scores of rows of many subspaces, shape (n_i,) each, in as few passes as memory allows."""
    with torch.no_grad():
        scores = [score(batches).numpy() for batches in _chunks(rows)]
    flat = np.concatenate([np.zeros(0), *scores])
    return np.split(flat, np.cumsum([len(x) for _, x in rows])[:-1]) if rows else []


def _chunks(rows: Rows) -> Iterator[Batches]:
    chunk: list[tuple[Subspace, Tensor]] = []
    room = CHUNK
    for subspace, x in rows:
        start = 0
        while start < len(x):
            part = torch.from_numpy(x[start : start + room])
            chunk.append((subspace, part))
            start, room = start + len(part), room - len(part)
            if not room:
                yield chunk
                chunk, room = [], CHUNK
    if chunk:
        yield chunk


def _climb(score: Score, pools: Sequence[Pool], effort: Effort, is_taken: IsTaken) -> None:
    """Climb from the best rows: step to the best one-change neighbour while the score rises."""
    tops = [
        (pool, pool.x[at], float(pool.scores[at]))
        for pool in pools
        for at in range(min(CLIMBED, len(pool.x)))
        if len(pool.subspace.discrete)
    ]
    for _ in range(effort.climbs):
        near = [(pool.subspace, _neighbours(pool, row)) for pool, row, _ in tops]
        scored = score_rows(score, near)
        if effort.leaps:
            near, scored = _with_leaps(score, tops, near, scored)
        found = zip(tops, near, scored, strict=True)
        tops = []
        for (pool, _, height), (subspace, x), scores in found:
            if effort.keeps_all:
                pool.add(x, scores)
            step = _best_step(subspace, x, scores, height, is_taken)
            if step is not None:
                tops.append((pool, x[step], float(scores[step])))
                if not effort.keeps_all:
                    pool.add(x[step : step + 1], scores[step : step + 1])
        if not tops:
            break
    for pool in pools:
        pool.sort()


def _with_leaps(
    score: Score, tops: Sequence[Top], near: Rows, scored: Sequence[Array]
) -> tuple[list[tuple[Subspace, Array]], list[Array]]:
    """Neighbours of each top with their scores, and the combined changes that these suggest."""
    parts = zip(tops, near, scored, strict=True)
    leaps = [(subspace, _leaps(top, x, scores)) for top, (subspace, x), scores in parts]
    heights = score_rows(score, leaps)
    rows = [(s, np.concatenate([x, far])) for (s, x), (_, far) in zip(near, leaps, strict=True)]
    return rows, [np.concatenate(pair) for pair in zip(scored, heights, strict=True)]


def _leaps(top: Top, near: Array, scores: Array) -> Array:
    """Rows that combine the 2, 3, ... best changes that are a gain each, one
    per column: (k, n_free).
    """
    pool, row, height = top
    discrete = pool.subspace.discrete
    leap, leaps, columns = row.copy(), [], set()
    for at in np.argsort(-scores, kind="stable"):
        if scores[at] <= height:
            break
        column = int(discrete[np.argmax(near[at, discrete] != row[discrete])])
        if column not in columns:
            columns.add(column)
            leap[column] = near[at, column]
            leaps.append(leap.copy())
    far = np.array(leaps[1:]).reshape(-1, len(row))
    return far[pool.region.contains(far)]


def _neighbours(pool: Pool, row: Array) -> Array:
    near = pool.subspace.neighbours(row)
    return near[pool.region.contains(near)]


def _best_step(
    subspace: Subspace, x: Array, scores: Array, height: float, is_taken: IsTaken
) -> int | None:
    """The best row that is better than ``height`` and not taken."""
    for at in np.argsort(-scores, kind="stable"):
        if scores[at] <= height:
            return None
        if not is_taken(subspace, x[at]):
            return int(at)
    return None


def _ascend(score: Score, pools: Sequence[Pool]) -> None:
    """Run gradient ascent over the continuous columns of each pool's best
    rows and add the results.
    """
    pools = [pool for pool in pools if len(pool.subspace.smooth) and len(pool.x)]
    if not pools:
        return
    ascent = _Ascent(score, pools)
    rows = [
        (pool.subspace, x[pool.region.contains(x)])
        for pool, x in zip(pools, ascent.run(), strict=True)
    ]
    for pool, (_, x), scores in zip(pools, rows, score_rows(score, rows), strict=True):
        pool.add(x, scores)
        pool.sort()


class _Ascent:
    """L-BFGS-B over the continuous columns of the best rows of all pools at once."""

    def __init__(self, score: Score, pools: Sequence[Pool]) -> None:
        self._score, self._pools = score, pools
        self._bases = [torch.from_numpy(pool.x[:ASCENDED].copy()) for pool in pools]
        self._columns = [torch.from_numpy(pool.subspace.smooth) for pool in pools]

    def run(self) -> list[Array]:
        """The rows after the ascent, snapped, by pool."""
        parts = zip(self._bases, self._columns, strict=True)
        start = np.concatenate([base[:, columns].numpy().ravel() for base, columns in parts])
        how = {"jac": True, "method": "L-BFGS-B", "bounds": self._bounds()}
        options = {"maxiter": ITERATIONS, "maxfun": int(1.3 * ITERATIONS)}
        end = minimize(self._loss, start, options=options, **how).x
        moved = self._rows(torch.from_numpy(end))
        return [subspace.snap(x.numpy()) for subspace, x in moved]

    def _bounds(self) -> list[tuple[float, float]]:
        bounds = []
        for pool, base in zip(self._pools, self._bases, strict=True):
            low, high = (end[pool.subspace.smooth] for end in (pool.region.low, pool.region.high))
            bounds += list(zip(low, high, strict=True)) * len(base)
        return bounds

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
        loss = -self._score(self._rows(free)).clamp_min(FLOOR).sum()
        (gradient,) = torch.autograd.grad(loss, free)
        return float(loss.detach()), gradient.numpy()
