"""Gaussian priors of hyperparameters; ``nasbo.gp.fit`` finds the MAP under them.

Hyperparameters of all kernels are logarithms (a logit for the sharing) in one flat vector.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

NOISE = (-12.0, 6.0)
"""Prior mean and sd of the log noise variance of standardised scores.

Its mean is next to no noise: without noise the variance must vanish, or the last digits of an
optimum are never seen. Its width costs a noise of half the signal 1.5 nats, so that few results
can tell. Of the priors (-8, 3), (-10, 5) and (-12, 6) the one that most often found the noise of
draws from the model, and the absence of noise.
"""
NOISY = -1.5
"""A log noise variance from which the search for the MAP starts a second time."""
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
