"""Gaussian priors of hyperparameters, including the noise variance.

``find_map`` in ``nasbo.gp.fit`` estimates all of them and searches for the noise from two starts.
Hyperparameters of all kernels are logarithms (a logit for the sharing) in one flat vector.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

NOISE = (-12.0, 6.0)
"""Prior mean and sd of the log noise variance of standardised scores.

The mean is nearly no noise: on noise-free data the estimate must be able to become so small that
the last digits of an optimum can be resolved. The sd is so wide that a noise of half the signal's
standard deviation costs 1.5 nats of log prior, which a few results outweigh. Of (-8, 3), (-10, 5)
and (-12, 6), this prior most often recovered the noise of samples from the model, and its absence.
"""
NOISY = -1.5
"""Log noise variance of the second start of the MAP search."""
LENGTHSCALE_SD = math.sqrt(3)


def lengthscale_mean(n_columns: int) -> float:
    """Prior mean of a log lengthscale among ``n_columns``; grows with the dimension."""
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
        """Indices of the log lengthscales of ``n`` parameters of one kernel."""
        return self.add(n, lengthscale_mean(n), sd)
