"""A density of hyperparameters with its gradient comes in; the place of its maximum goes out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from nasbo.surrogates.base import FitError
from nasbo.surrogates.kernels import Priors

Array = NDArray[np.float64]
Density = Callable[[Array], tuple[float, Array]]
"""Hyperparameters, shape (p,), to a negative log density and its gradient, shape (p,)."""

ITERATIONS = 60
TOLERANCE = 2e-5
"""Relative gain of a step at which the search ends: some 0.001 nats, which no posterior shows."""
BOUND_SDS = 5.0
FAILED = 1e6
"""What a density answers where it cannot be computed."""


def maximise_density(density: Density, priors: Priors, iterations: int = ITERATIONS) -> Array:
    """Hyperparameters of the smallest negative log density, shape (p,), by L-BFGS-B.

    Args:
        density: what is minimised.
        priors: give the start, at their means, and the bounds.
        iterations: at most so many.

    Raises:
        FitError: the density is not finite anywhere on the way.
    """
    means, sds = np.array(priors.means), np.array(priors.sds)
    reach = BOUND_SDS * sds
    result = minimize(
        density,
        means,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(means - reach, means + reach, strict=True)),
        options={"maxiter": iterations, "maxfun": int(1.3 * iterations), "ftol": TOLERANCE},
    )
    if not np.isfinite(result.fun) or result.fun >= FAILED:
        raise FitError(f"the marginal likelihood must be finite, got {result.fun}")
    theta: Array = np.asarray(result.x, dtype=np.float64)
    return theta
