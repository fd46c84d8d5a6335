"""Gaussian priors of hyperparameters.

Hyperparameters of all kernels are logarithms (a logit for the sharing) in one flat vector.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

NOISE = (-8.0, 3.0)
"""Prior mean and sd of the log noise variance of standardised scores.

As wide as that because the papers of these models have no prior: on functions without noise the
variance must be able to vanish, or the last digits of an optimum are never seen.
"""
LENGTHSCALE_SD = math.sqrt(3)


def lengthscale_mean(n_columns: int) -> float:
    """Prior mean of a log lengthscale among ``n_columns``: grows with the dimension."""
    return math.sqrt(2) - 3.0 + 0.5 * math.log(max(n_columns, 1))


@dataclass
class Priors:
    """Gaussian priors of all hyperparameters, in the order in which they were added."""

    means: list[float] = field(default_factory=list)
    sds: list[float] = field(default_factory=list)

    def add(self, n: int, mean: float, sd: float) -> list[int]:
        """Indices of ``n`` new hyperparameters."""
        start = len(self.means)
        self.means += [mean] * n
        self.sds += [sd] * n
        return list(range(start, start + n))

    def add_lengthscales(self, n: int, sd: float = LENGTHSCALE_SD) -> list[int]:
        """Indices of the log lengthscales of ``n`` parameters that stand in one kernel."""
        return self.add(n, lengthscale_mean(n), sd)
