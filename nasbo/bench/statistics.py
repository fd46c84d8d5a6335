"""Numbers of runs come in; intervals, ranks and tests go out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, wilcoxon

Array = NDArray[np.float64]

N_RESAMPLES = 2_000
LEVEL = 0.95
SIGNIFICANT = 0.05
TIE_DIGITS = 4
"""Regrets that agree to so many digits of the distance from the best to random are equal: beyond
that, only the last steps of a polish would be compared."""


@dataclass(frozen=True)
class Interval:
    """A mean with the bounds of its confidence interval."""

    mean: float
    low: float
    high: float


def bootstrap(values: Sequence[float] | Array, seed: int = 0) -> Interval:
    """The mean and its percentile interval by resampling; one value has no width."""
    sample = np.asarray(values, dtype=np.float64)
    if not len(sample):
        return Interval(math.nan, math.nan, math.nan)
    rng = np.random.default_rng(seed)
    means = sample[rng.integers(len(sample), size=(N_RESAMPLES, len(sample)))].mean(1)
    low, high = _bounds(means)
    return Interval(float(sample.mean()), float(low), float(high))


def bootstrap_bands(curves: Array, seed: int = 0) -> tuple[Array, Array, Array]:
    """The same at each point of curves, shape (n, t): mean, low and high, shape (t,) each."""
    rng = np.random.default_rng(seed)
    picks = rng.integers(len(curves), size=(N_RESAMPLES // 4, len(curves)))
    means = curves[picks].mean(1)
    low, high = _bounds(means)
    return curves.mean(0), low, high


def _bounds(means: Array) -> tuple[Array, Array]:
    """The bounds of the interval along the first axis; between infinities there are none."""
    tail = (1.0 - LEVEL) / 2.0
    with np.errstate(invalid="ignore"):
        low, high = np.quantile(means, [tail, 1.0 - tail], axis=0)
    return low, high


def ranks(regrets: Array) -> Array:
    """Ranks along the second axis, 1 is the least; ties share the mean of their ranks.

    Args:
        regrets: shape (pairs, methods, ...).
    """
    ranked: Array = rankdata(np.round(regrets, TIE_DIGITS), axis=1)
    return ranked


@dataclass(frozen=True)
class Comparison:
    """Paired regrets of two methods.

    Attributes:
        wins: pairs in which the first has less regret.
        p: of the two-sided Wilcoxon signed-rank test; 1 where all pairs are ties.
        lean: sum of the signed ranks over its largest size: 1 where the first wins all pairs.
    """

    wins: int
    losses: int
    ties: int
    p: float
    lean: float

    @property
    def verdict(self) -> str:
        """``ahead``, ``behind`` or ``even``, by the test."""
        if self.p >= SIGNIFICANT:
            return "even"
        return "ahead" if self.lean > 0 else "behind"


def compare(first: Array, second: Array) -> Comparison:
    """The first against the second, shape (n,) each, pairs in the same order.

    Two that have found nothing, whose regrets are infinite, are even.
    """
    with np.errstate(invalid="ignore"):
        gaps = np.round(second, TIE_DIGITS) - np.round(first, TIE_DIGITS)
    gaps[np.isnan(gaps)] = 0.0
    wins, losses = int((gaps > 0).sum()), int((gaps < 0).sum())
    p, lean = 1.0, 0.0
    if wins + losses:
        p = float(wilcoxon(gaps, zero_method="wilcox").pvalue)
        untied = gaps[gaps != 0]
        signed = rankdata(np.abs(untied)) * np.sign(untied)
        lean = float(signed.sum() / np.abs(signed).sum())
    return Comparison(wins, losses, len(gaps) - wins - losses, p, lean)


def first_below(curve: Array, target: float) -> float:
    """The point from which on a curve is not above the target; infinity if there is none.

    A curve of returned configs may rise again, and has then not reached the target yet.
    """
    above = np.flatnonzero(~(curve <= target))
    first = int(above[-1]) + 1 if len(above) else 0
    return float(first) if first < len(curve) else math.inf
