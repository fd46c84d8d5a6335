"""Bootstrap intervals, ranks and Wilcoxon tests."""

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
"""Normalised regrets are ties if they agree to this number of digits: further digits would only
compare the last steps of local optimisation."""


@dataclass(frozen=True)
class Interval:
    """A mean with the bounds of its confidence interval."""

    mean: float
    low: float
    high: float


def bootstrap(values: Sequence[float] | Array, seed: int = 0) -> Interval:
    """Mean and percentile bootstrap interval; zero width for one value."""
    sample = np.asarray(values, dtype=np.float64)
    if not len(sample):
        return Interval(math.nan, math.nan, math.nan)
    rng = np.random.default_rng(seed)
    means = sample[rng.integers(len(sample), size=(N_RESAMPLES, len(sample)))].mean(1)
    low, high = _bounds(means)
    return Interval(float(sample.mean()), float(low), float(high))


def bootstrap_bands(curves: Array, seed: int = 0) -> tuple[Array, Array, Array]:
    """Bootstrap interval at each point of curves, (n, t): mean, low and high, shape (t,) each."""
    rng = np.random.default_rng(seed)
    picks = rng.integers(len(curves), size=(N_RESAMPLES // 4, len(curves)))
    means = curves[picks].mean(1)
    low, high = _bounds(means)
    return curves.mean(0), low, high


def _bounds(means: Array) -> tuple[Array, Array]:
    """Bounds of the interval along the first axis; NaN between infinities."""
    tail = (1.0 - LEVEL) / 2.0
    with np.errstate(invalid="ignore"):
        low, high = np.quantile(means, [tail, 1.0 - tail], axis=0)
    return low, high


def ranks(regrets: Array) -> Array:
    """Ranks along the second axis, 1 is the least; ties get their mean rank.

    Args:
        regrets: shape (pairs, methods, ...).
    """
    ranked: Array = rankdata(np.round(regrets, TIE_DIGITS), axis=1)
    return ranked


@dataclass(frozen=True)
class Comparison:
    """Paired comparison of the regrets of two methods.

    Attributes:
        wins: number of pairs in which the first has less regret.
        p: of the two-sided Wilcoxon signed-rank test; 1 if all pairs are ties.
        lean: sum of the signed ranks divided by its maximum: 1 if the first wins all pairs.
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
    """Compare the first with the second, shape (n,) each, paired.

    Two infinite regrets, of searches without any result, are a tie.
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
    """Index from which on a curve stays at or below the target; infinity if there is none.

    A curve of returned configs may rise again: it has then not reached the target yet.
    """
    above = np.flatnonzero(~(curve <= target))
    first = int(above[-1]) + 1 if len(above) else 0
    return float(first) if first < len(curve) else math.inf
