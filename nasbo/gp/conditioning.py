"""Exact Gaussian process conditioning by Cholesky factors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

JITTERS = (0.0, 1e-6, 1e-5, 1e-4)
MIN_VARIANCE = 1e-9


class FitError(ArithmeticError):
    """A surrogate could not be fitted: non-finite loss, non-PSD kernel, too few rows."""


@dataclass(frozen=True)
class Conditioned:
    """A zero-mean GP conditioned on rows.

    Attributes:
        factor: lower Cholesky factor of K + noise, shape (n, n).
        y: scores of the rows, shape (n,).
        alpha: (K + noise)^-1 y, shape (n,).
    """

    factor: Tensor
    y: Tensor
    alpha: Tensor

    @classmethod
    def on(cls, K: Tensor, y: Tensor) -> Conditioned:
        """Condition on scores with covariance ``K``, noise included, shape (n, n).

        Raises:
            FitError: ``K`` is not finite or not positive definite, even with some jitter.
        """
        if not bool(torch.isfinite(K).all()) or not bool(torch.isfinite(y).all()):
            raise FitError("kernel matrix and scores must be finite")
        eye = torch.eye(len(K), dtype=K.dtype)
        for jitter in JITTERS:
            factor, failed = torch.linalg.cholesky_ex(K + jitter * eye)
            if not int(failed):
                return cls(factor, y, torch.cholesky_solve(y[:, None], factor)[:, 0])
        raise FitError(f"the kernel matrix must be positive definite, also with {JITTERS[-1]:g}")

    def extended(self, cross: Tensor, K: Tensor) -> Conditioned:
        """Condition also on new rows, at their own mean (the mean stays, the variance shrinks).

        Args:
            cross: covariances of the new rows and the old ones, shape (m, n).
            K: covariances of the new rows, noise included, shape (m, m).
        """
        lower = torch.linalg.solve_triangular(self.factor, cross.T, upper=False).T
        corner = Conditioned.on(K - lower @ lower.T, K.new_zeros(len(K))).factor
        above = self.factor.new_zeros(len(self.factor), len(K))
        factor = torch.cat([torch.cat([self.factor, above], 1), torch.cat([lower, corner], 1)])
        y = torch.cat([self.y, cross @ self.alpha])
        return Conditioned(factor, y, torch.cholesky_solve(y[:, None], factor)[:, 0])

    def marginals(self, cross: Tensor, diagonal: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance, shape (m,) each, for ``cross`` (m, n) and prior variances (m,)."""
        solved = torch.linalg.solve_triangular(self.factor, cross.T, upper=False)
        variance = diagonal - (solved * solved).sum(0)
        return cross @ self.alpha, variance.clamp_min(MIN_VARIANCE)

    def joint(self, cross: Tensor, K: Tensor) -> tuple[Tensor, Tensor]:
        """Mean (m,) and covariance (m, m), for ``cross`` (m, n) and prior covariance (m, m)."""
        solved = torch.linalg.solve_triangular(self.factor, cross.T, upper=False)
        return cross @ self.alpha, K - solved.T @ solved
