"""Kernels, hyperparameters and scored rows come in; the posterior over feature rows goes out.

The derivative by the features is worked out by hand and handed to autograd as one step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import lapack
from torch import Tensor

from nasbo.surrogates.covariance import Kernel, Table
from nasbo.surrogates.exact import MIN_VARIANCE, Conditioned

Array = NDArray[np.float64]
Back = Callable[[Array, Array], Array]
"""Derivatives of a loss by means and variances, (n,) each, to that by features, (n, n_features)."""

CHUNK = 256
"""Rows whose covariances are worked out at once: bounds memory."""


class Covariances:
    """The sum of kernels under some hyperparameters, against rows that stay.

    Args:
        kernels: which sum up to the covariance.
        theta: the hyperparameters, shape (p,).
        seen: the rows.
    """

    def __init__(self, kernels: Sequence[Kernel], theta: Array, seen: Table) -> None:
        self.kernels, self.theta, self.seen = kernels, theta, seen
        self.fixed = [kernel.against(theta, seen) for kernel in kernels]

    def cross(self, rows: Table) -> Array:
        """Covariances of rows with those that stay, shape (n, m)."""
        chunks = np.split(np.arange(len(rows)), range(CHUNK, len(rows), CHUNK))
        parts = [rows.take(places) for places in chunks]
        return np.concatenate([_total([f.gram(part)[0] for f in self.fixed]) for part in parts])

    def among(self, rows: Table) -> Array:
        """Covariances among other rows, shape (n, n)."""
        return Covariances(self.kernels, self.theta, rows).cross(rows)


class KernelPosterior:
    """A zero-mean GP with a sum of kernels, conditioned on rows.

    Args:
        covariances: against the rows.
        noise: variance on the diagonal.
        conditioned: on the rows, noise included.
    """

    def __init__(self, covariances: Covariances, noise: float, conditioned: Conditioned) -> None:
        self._covariances, self._noise, self._conditioned = covariances, noise, conditioned

    @classmethod
    def on(cls, covariances: Covariances, noise: float, z: Array) -> KernelPosterior:
        """Condition on the scores of the rows that stay, shape (m,)."""
        K = _noisy(covariances.cross(covariances.seen), noise)
        return cls(covariances, noise, Conditioned.on(K, torch.from_numpy(z)))

    def best_mean(self) -> float:
        """The largest mean at the rows it is conditioned on."""
        # K alpha = z - noise alpha spares the product.
        residual = self._noise * self._conditioned.alpha
        return float((self._conditioned.y - residual).max())

    def extended(self, rows: Table) -> KernelPosterior:
        """The same, also conditioned on rows as if they had ended at their mean."""
        old = self._covariances
        cross = torch.from_numpy(old.cross(rows))
        conditioned = self._conditioned.extended(cross, _noisy(old.among(rows), self._noise))
        new = Covariances(old.kernels, old.theta, old.seen.join(rows))
        return KernelPosterior(new, self._noise, conditioned)

    def marginals(self, features: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance, shape (n,) each, differentiable in ``features``.

        Args:
            features: of the rows, shape (n, n_features).
            active: which gates are open, shape (n, n_gates).
        """
        mean, variance = _Moments.apply(features, active, self)
        return mean, variance

    def joint(self, rows: Table) -> tuple[Tensor, Tensor]:
        """Mean, shape (n,), and covariance, shape (n, n), of rows."""
        cross = torch.from_numpy(self._covariances.cross(rows))
        return self._conditioned.joint(cross, torch.from_numpy(self._covariances.among(rows)))

    def moments(self, rows: Table) -> tuple[Array, Array, Back]:
        """Mean and variance, shape (n,) each, and the way back to the features."""
        grams = [fixed.gram(rows) for fixed in self._covariances.fixed]
        diagonals = [fixed.diagonal(rows) for fixed in self._covariances.fixed]
        cross = _total([K for K, _ in grams])
        factor, alpha = self._conditioned.factor.numpy(), self._conditioned.alpha.numpy()
        solved = _solve(factor, cross.T)
        raw = _total([v for v, _ in diagonals]) - np.einsum("nm,nm->m", solved, solved)

        def back(by_mean: Array, by_variance: Array) -> Array:
            by_variance = np.where(raw > MIN_VARIANCE, by_variance, 0.0)
            weights = _solve(factor, solved, is_transposed=True).T
            by_gram = by_mean[:, None] * alpha - 2.0 * by_variance[:, None] * weights
            by_features = np.zeros(rows.features.shape)
            for (_, pull), (_, pull_diagonal) in zip(grams, diagonals, strict=True):
                pull(by_gram, by_features)
                pull_diagonal(by_variance, by_features)
            return by_features

        return cross @ alpha, np.maximum(raw, MIN_VARIANCE), back


class _Moments(torch.autograd.Function):
    """The moments as one step of autograd."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, active: Tensor, posterior: KernelPosterior
    ) -> tuple[Tensor, Tensor]:
        table = Table(features.detach().numpy(), active.numpy())
        mean, variance, ctx.back = posterior.moments(table)
        return torch.from_numpy(mean), torch.from_numpy(variance)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        by_mean, by_variance = (gradient.numpy() for gradient in gradients)
        return torch.from_numpy(ctx.back(by_mean, by_variance)), None, None


def _noisy(K: Array, noise: float) -> Tensor:
    return torch.from_numpy(K + noise * np.eye(len(K)))


def _total(parts: Sequence[Array]) -> Array:
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def _solve(factor: Array, right: Array, is_transposed: bool = False) -> Array:
    """L^-1 or L^-T times ``right`` for a lower factor L in row order, shape (n, m)."""
    # LAPACK reads rows as columns, so L arrives as its transpose, an upper factor.
    solved, _ = lapack.dtrtrs(factor.T, right, lower=0, trans=0 if is_transposed else 1)
    result: Array = solved
    return result
