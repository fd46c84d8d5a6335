"""Members of one GP under several hyperparameters come in; their mixture's moments go out.

A member is a function of feature rows; the derivative by the features is worked out by hand and
handed to autograd as one step.
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


class Member:
    """The GP under one vector of hyperparameters, and its share in the mixture.

    Args:
        kernels: which sum up to the covariance.
        theta: the hyperparameters, shape (p,).
        seen: the rows it is conditioned on.
        share: of the mixture.
    """

    conditioned: Conditioned

    def __init__(
        self, kernels: Sequence[Kernel], theta: Array, seen: Table, share: float = 1.0
    ) -> None:
        self.kernels, self.theta, self.seen, self.share = kernels, theta, seen, share
        self._fixed = [kernel.against(theta, seen) for kernel in kernels]

    def cross(self, rows: Table) -> Array:
        """Covariances of rows with those it is conditioned on, shape (n, m)."""
        parts = [
            _total([fixed.gram(rows.take(places))[0] for fixed in self._fixed])
            for places in np.split(np.arange(len(rows)), range(CHUNK, len(rows), CHUNK))
        ]
        return np.concatenate(parts)

    def gram(self, rows: Table) -> Array:
        """Covariances among rows, shape (n, n)."""
        return Member(self.kernels, self.theta, rows).cross(rows)

    def joint(self, rows: Table) -> tuple[Tensor, Tensor]:
        """Mean, shape (n,), and covariance, shape (n, n), of rows."""
        cross, K = torch.from_numpy(self.cross(rows)), torch.from_numpy(self.gram(rows))
        return self.conditioned.joint(cross, K)

    def moments(self, rows: Table) -> tuple[Array, Array, Back]:
        """Mean and variance, shape (n,) each, and the way back to the features."""
        grams = [fixed.gram(rows) for fixed in self._fixed]
        diagonals = [fixed.diagonal(rows) for fixed in self._fixed]
        cross = _total([K for K, _ in grams])
        factor, alpha = self.conditioned.factor.numpy(), self.conditioned.alpha.numpy()
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


class Mixture:
    """The mixture of members that have seen the same rows."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = list(members)

    def posterior(self, features: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance, shape (n,) each, differentiable in ``features``.

        Args:
            features: of the rows, shape (n, n_features).
            active: which gates are open, shape (n, n_gates).
        """
        mean, variance = _Moments.apply(features, active, self)
        return mean, variance

    def joint(self, rows: Table) -> tuple[Tensor, Tensor]:
        """Mean, shape (n,), and covariance, shape (n, n), of rows."""
        moments = [(member.share, *member.joint(rows)) for member in self.members]
        mean = torch.stack([share * m for share, m, _ in moments]).sum(0)
        parts = [s * (c + torch.outer(m - mean, m - mean)) for s, m, c in moments]
        return mean, torch.stack(parts).sum(0)

    def moments(self, rows: Table) -> tuple[Array, Array, Back]:
        """Mean and variance, shape (n,) each, and the way back to the features."""
        if len(self.members) == 1:
            return self.members[0].moments(rows)
        parts = [(member.share, *member.moments(rows)) for member in self.members]
        mean = _total([share * own for share, own, _, _ in parts])
        variance = _total([s * (v + (own - mean) ** 2) for s, own, v, _ in parts])

        def back(by_mean: Array, by_variance: Array) -> Array:
            total = np.zeros(rows.features.shape)
            for share, own, _, own_back in parts:
                slope = by_mean + 2.0 * by_variance * (own - mean)
                total += own_back(share * slope, share * by_variance)
            return total

        return mean, variance, back


class _Moments(torch.autograd.Function):
    """The mixture's moments as one step of autograd."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, active: Tensor, mixture: Mixture
    ) -> tuple[Tensor, Tensor]:
        table = Table(features.detach().numpy(), active.numpy())
        mean, variance, ctx.back = mixture.moments(table)
        return torch.from_numpy(mean), torch.from_numpy(variance)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        by_mean, by_variance = (gradient.numpy() for gradient in gradients)
        return torch.from_numpy(ctx.back(by_mean, by_variance)), None, None


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
