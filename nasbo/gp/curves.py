"""Kernel of learning curves: covariance of values at different steps of training.

A value at fraction t of a full training is modelled as the sum of three parts: the config's score,
of which a share rho is constant and the rest changes with training; one mean curve for all configs;
and the deviation of one trial's curve, which is 0 at the end. Steps are correlated by ``near(t, t')
= exp(-|log t - log t'| / reach)``:

    k((x, t), (x', t')) = k(x, x') [rho + (1 - rho) near(t, t')] + mean near(t, t')
                          + own 1(same trial) [near(t, t') - near(t, 1) near(1, t')]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nasbo.gp.priors import Priors

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
PullMatrix = Callable[[Array, Array], Array]
"""Vector-Jacobian product: from derivatives of a loss by the covariances of rows, (n, n),
to those by the covariances of configs, (n, n). Those by hyperparameters are added to the
second argument, shape (p,)."""


@dataclass(frozen=True)
class CurveKernel:
    """Kernel of learning curves, by the indices of its hyperparameters.

    Attributes:
        sharing: of logit rho.
        reach: of the log reach.
        mean: of the log variance of the mean curve.
        own: of the log variance of the deviation of a trial, far from the end.
    """

    sharing: int
    reach: int
    mean: int
    own: int

    @classmethod
    def add_to(cls, priors: Priors) -> CurveKernel:
        """Add hyperparameters for a new kernel."""
        (sharing,) = priors.add(1, 1.0, 1.0)
        (reach,) = priors.add(1, math.log(1.5), 0.7)
        (mean,) = priors.add(1, 0.0, 1.0)
        (own,) = priors.add(1, math.log(0.1), 1.0)
        return cls(sharing, reach, mean, own)

    def at_the_end(self, theta: Array, log_steps: Array) -> tuple[Array, Array]:
        """Factor and summand, shape (n,) each, of covariances between full trainings and rows.

        Args:
            theta: hyperparameters, shape (p,).
            log_steps: log t of the rows, shape (n,).
        """
        near = np.exp(-np.abs(log_steps) / math.exp(theta[self.reach]))
        rho = _share(theta[self.sharing])
        return rho + (1.0 - rho) * near, math.exp(theta[self.mean]) * near


class CurvePairs:
    """The kernel on all pairs of rows, for the fit and for conditioning.

    Args:
        kernel: the hyperparameters.
        log_steps: log t of each row, shape (n,).
        trial: index of the trial that each row is a value of, shape (n,).
    """

    def __init__(self, kernel: CurveKernel, log_steps: Array, trial: Indices) -> None:
        self._kernel = kernel
        self._gap = np.abs(log_steps[:, None] - log_steps)
        self._to_go = np.abs(log_steps[:, None]) + np.abs(log_steps)
        self._is_same = (trial[:, None] == trial).astype(np.float64)

    def apply(self, theta: Array, K: Array) -> tuple[Array, PullMatrix]:
        """Covariances of the rows from those of their configs, shape (n,
        n), with their derivative.
        """
        kernel = self._kernel
        reach, rho = math.exp(theta[kernel.reach]), _share(theta[kernel.sharing])
        mean, own = math.exp(theta[kernel.mean]), math.exp(theta[kernel.own])
        near, at_end = np.exp(-self._gap / reach), np.exp(-self._to_go / reach)
        relation = rho + (1.0 - rho) * near
        deviation = own * self._is_same * (near - at_end)

        def pull(by_rows: Array, gradient: Array) -> Array:
            by_relation = by_rows * K
            gradient[kernel.sharing] += rho * (1.0 - rho) * (by_relation * (1.0 - near)).sum()
            by_near = (1.0 - rho) * by_relation + (mean + own * self._is_same) * by_rows
            by_end = own * self._is_same * by_rows
            slopes = by_near * near * self._gap - by_end * at_end * self._to_go
            gradient[kernel.reach] += slopes.sum() / reach
            gradient[kernel.mean] += mean * (by_rows * near).sum()
            gradient[kernel.own] += (by_rows * deviation).sum()
            result: Array = by_rows * relation
            return result

        result: Array = K * relation + mean * near + deviation
        return result, pull


def _share(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-logit))
