"""Output transform: standardised scores without the long tail of very bad configs.

A transform that adapts to all scores drifts as good configs accumulate and can trap the search, so
the strength of this one is set by the initial design alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MIN_ANCHOR = 8
SHIFTS = (4.0, 2.0, 1.0, 0.5, 0.3)
"""Shifts of the logarithm, from mild to strong, in units of (median of
the design - best so far)."""
MAX_DEPTH = 5.0
"""Maximum distance of a score below the median of the design. The unit is the larger one of the
distances from the median to the best score and to the lower quartile of the design."""


@dataclass(frozen=True)
class Scale:
    """Affine or logarithmic map between scores and a model's scale.

    Attributes:
        mean: of the transformed scores.
        sd: of the transformed scores.
        shift: added inside the logarithm; ``None`` where scores were not transformed.
    """

    mean: float
    sd: float
    shift: float | None = None

    def to_score(self, z: float) -> float:
        """A value on the model's scale as a score. The map is monotone, so
        quantiles stay quantiles.
        """
        y = self.mean + self.sd * z
        return y if self.shift is None else self.shift - math.exp(min(-y, 700.0))

    def from_score(self, y: Array) -> Array:
        """Scores on the model's scale, shape (n,), without clipping."""
        straight = y if self.shift is None else -np.log(self.shift - y)
        scaled: Array = (straight - self.mean) / self.sd
        return scaled

    def slope(self, y: Array) -> Array:
        """Derivative of the model's scale by the score, shape (n,)."""
        slope: Array = np.ones_like(y) if self.shift is None else 1.0 / (self.shift - y)
        return slope / self.sd


def model_scale(y: Array, n_design: int, is_straightened: bool = True) -> tuple[Array, Scale]:
    """Scores on a model's scale, shape (n,), and the map back."""
    straight, shift = straighten(y, n_design) if is_straightened else (y, None)
    z, mean, sd = standardise(cut_depths(straight, n_design))
    return z, Scale(mean, sd, shift)


def cut_depths(y: Array, n_design: int) -> Array:
    """Clip very bad scores from below, shape (n,), so that none of them sets the scale of all."""
    low, middle = np.quantile(_anchor(y, n_design), (0.25, 0.5))
    height = max(float(y.max() - middle), float(middle - low))
    return np.maximum(y, middle - MAX_DEPTH * height) if height > 0 else y


def _anchor(y: Array, n_design: int) -> Array:
    """The scores of the design, extended to ``MIN_ANCHOR`` scores if there are as many."""
    return y[: max(n_design, min(len(y), MIN_ANCHOR))]


def straighten(y: Array, n_design: int) -> tuple[Array, float | None]:
    """Log-transform scores if the design is skewed towards bad ones, with the
    mildest shift that helps.

    Args:
        y: scores, larger is better, shape (n,).
        n_design: number of leading rows that are the design; at least ``MIN_ANCHOR`` rows are used
            if there are as many.

    Returns:
        Scores, larger is better, shape (n,), in the same order, and the shift s of -log(s - y); the
        unchanged scores and ``None`` if the design is not skewed.
    """
    loss = -y
    anchor = _anchor(loss, n_design)
    allowed = math.sqrt(6.0 / len(anchor))
    if skewness(anchor) <= allowed:
        return y, None
    best = float(loss.min())
    height = max(float(np.median(anchor)) - best, 1e-9 * float(np.ptp(anchor)))
    for shift in SHIFTS:
        if skewness(np.log(anchor - best + shift * height)) <= allowed:
            break
    transformed: Array = -np.log(loss - best + shift * height)
    return transformed, shift * height - best


def skewness(values: Array) -> float:
    """Third standardised moment; 0 for constant values."""
    centred = values - values.mean()
    return float(np.mean((centred / max(float(values.std()), 1e-12)) ** 3))


def standardise(y: Array) -> tuple[Array, float, float]:
    """Scores with mean 0 and sd 1, and that mean and sd; constant scores become 0."""
    mean, sd = float(y.mean()), float(y.std())
    if sd <= 1e-12 * float(np.abs(y).max()):
        return np.zeros_like(y), mean, 1.0
    return (y - mean) / sd, mean, sd
