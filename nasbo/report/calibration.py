"""Calibration of the surrogate: its predictions against the results."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest, norm, spearmanr

from nasbo.history import PREDICTION, Trial, View
from nasbo.report.axes import is_finite

EXPECTED_COVERAGE = math.erf(math.sqrt(0.5))
"""Expected share of results within one standard deviation under a normal posterior."""
CONFIDENCE = 0.95
MIN_POINTS = 5
"""Least number of results from which coverage and rank correlation are reported."""


@dataclass(frozen=True)
class Prediction:
    """A result and its earlier prediction, in values of the metric.

    Attributes:
        trial: the trial.
        value: the observed value.
        median: the predicted value.
        low: lower end of the interval of one standard deviation.
        high: its upper end.
    """

    trial: Trial
    value: float
    median: float
    low: float
    high: float

    @property
    def is_inside(self) -> bool:
        return self.low <= self.value <= self.high


def predictions(history: View) -> list[Prediction]:
    """Predictions of all finished trials of the model, in the order of trial numbers."""
    found = []
    for trial in history.trials:
        known = [trial.info.get(key) for key in PREDICTION]
        if trial.state == "finished" and trial.value is not None and all(map(is_finite, known)):
            found.append(Prediction(trial, trial.value, *map(float, known)))  # type: ignore[arg-type]
    return found


def n_inside(found: list[Prediction]) -> int:
    """Number of results inside their intervals."""
    return sum(one.is_inside for one in found)


def coverage(found: list[Prediction]) -> float:
    """Share of results inside their intervals."""
    return n_inside(found) / len(found)


def coverage_interval(found: list[Prediction]) -> tuple[float, float]:
    """Wilson interval of the coverage at 95 % confidence."""
    interval = binomtest(n_inside(found), len(found)).proportion_ci(CONFIDENCE, method="wilson")
    return float(interval.low), float(interval.high)


def rank_correlation(found: list[Prediction]) -> float:
    """Spearman correlation of predictions and results; 0 if one of them is constant."""
    predicted = np.array([one.median for one in found])
    came = np.array([one.value for one in found])
    if len(found) < 2 or np.ptp(predicted) == 0 or np.ptp(came) == 0:
        return 0.0
    return float(spearmanr(predicted, came).statistic)


def correlation_interval(correlation: float, n: int) -> tuple[float, float]:
    """Confidence interval of a rank correlation of n > 3 points, at 95 %.

    Fisher's transformation with the variance of Bonett and Wright (2000). It diverges at 1, so a
    perfect order is treated as if two neighbours were exchanged.
    """
    most = 1 - 12 / (n**3 - n)
    inner = min(max(correlation, -most), most)
    reach = float(norm.ppf((1 + CONFIDENCE) / 2)) * math.sqrt((1 + inner**2 / 2) / (n - 3))
    low, high = (math.tanh(math.atanh(inner) + sign * reach) for sign in (-1, 1))
    return min(low, correlation), max(high, correlation)
