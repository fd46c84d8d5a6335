"""A history comes in; what the surrogate had predicted of each result before it came goes out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nasbo.history import PREDICTION, History, Trial
from nasbo.report.axes import is_finite

EXPECTED_COVERAGE = math.erf(math.sqrt(0.5))
"""How many results a normal posterior has within one standard deviation."""


@dataclass(frozen=True)
class Prediction:
    """A result and what was thought of it before, in values of the metric.

    Attributes:
        trial: whose value came.
        value: the value that came.
        median: the predicted one.
        low: the lower end of the interval of one standard deviation.
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


def predictions(history: History) -> list[Prediction]:
    """What was predicted of all finished model suggestions, in the order of trial numbers."""
    found = []
    for trial in history.trials:
        known = [trial.info.get(key) for key in PREDICTION]
        if trial.state == "finished" and trial.value is not None and all(map(is_finite, known)):
            found.append(Prediction(trial, trial.value, *map(float, known)))  # type: ignore[arg-type]
    return found


def coverage(found: list[Prediction]) -> float:
    """Part of the results inside their intervals."""
    return sum(one.is_inside for one in found) / len(found)


def rank_correlation(found: list[Prediction]) -> float:
    """Spearman's correlation of predictions and results; 0 where one of them is constant."""
    predicted = np.array([one.median for one in found])
    came = np.array([one.value for one in found])
    if len(found) < 2 or np.ptp(predicted) == 0 or np.ptp(came) == 0:
        return 0.0
    return float(np.corrcoef(_ranks(predicted), _ranks(came))[0, 1])


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks of values (n,), 1 is the least; ties share the mean of their ranks."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return ranks
