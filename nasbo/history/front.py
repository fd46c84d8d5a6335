"""Pareto fronts, their hypervolume, and the reference point of a search."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Reference:
    """Reference point of the hypervolume, and the scale on which it is measured.

    Attributes:
        values: of the objectives, in the units of their metrics.
        is_log: which objectives are taken as their logarithms; these are positive costs.
    """

    values: tuple[float, ...]
    is_log: tuple[bool, ...]

    @staticmethod
    def of_json(plain: Mapping[str, Any]) -> Reference:
        """Parse the plain values of a journal."""
        return Reference(tuple(map(float, plain["values"])), tuple(map(bool, plain["is_log"])))


def straight(values: Array, is_log: Sequence[bool]) -> Array:
    """Values, shape (n, m), with logarithms where these are taken; costs of 0 are cut off."""
    chosen = np.array(is_log, dtype=bool)
    least = np.finfo(np.float64).tiny
    return np.where(chosen, np.log(np.where(chosen, np.maximum(values, least), 1.0)), values)


def dominates(scores: Array) -> NDArray[np.bool_]:
    """Whether row i is nowhere worse than row j and somewhere better, shape (n, n)."""
    no_worse = (scores[:, None, :] >= scores[None, :, :]).all(-1)
    better = (scores[:, None, :] > scores[None, :, :]).any(-1)
    return np.asarray(no_worse & better)


def on_front(scores: Array) -> NDArray[np.bool_]:
    """Which rows of scores, shape (n, m), no other row dominates; equal rows all count."""
    return np.asarray(~dominates(scores).any(0))


def front_ranks(scores: Array) -> NDArray[np.intp]:
    """Front of each row, shape (n,): 0 for the Pareto front, 1 for that of the others, and so on.

    This is the non-dominated sorting of NSGA-II (Deb et al. 2002).
    """
    beaten = dominates(scores)
    ranks = np.zeros(len(scores), dtype=np.intp)
    left, rank = np.arange(len(scores)), 0
    while len(left):
        is_first = ~beaten[np.ix_(left, left)].any(0)
        ranks[left[is_first]] = rank
        left, rank = left[~is_first], rank + 1
    return ranks


def hypervolume(scores: Array, reference: Array) -> float:
    """Volume that rows dominate above a reference point, for one to three objectives.

    Args:
        scores: larger is better, shape (n, m).
        reference: shape (m,).
    """
    above = scores[(scores > reference).all(1)] - reference
    if not len(above):
        return 0.0
    if above.shape[1] == 1:
        return float(above.max())
    order = np.argsort(-above[:, -1], kind="stable")
    above = above[order]
    depths = -np.diff(above[:, -1], append=0.0)
    zero = np.zeros(above.shape[1] - 1)
    slices = (hypervolume(above[: k + 1, :-1], zero) for k in range(len(above)))
    return math.fsum(area * depth for area, depth in zip(slices, depths, strict=True) if depth > 0)


def knee(scores: Array) -> int:
    """Index of the row of a front that is the furthest from the line between its ends.

    Scores are scaled to the range of the front (Das 1999). Of three objectives it is the row
    nearest to the best of each.

    Args:
        scores: of the front, shape (n, m).
    """
    low, high = scores.min(0), scores.max(0)
    scaled = (scores - low) / np.where(high > low, high - low, 1.0)
    if scores.shape[1] == 2:
        return int(np.argmax(scaled.sum(1)))
    return int(np.argmin(np.square(1.0 - scaled).sum(1)))
