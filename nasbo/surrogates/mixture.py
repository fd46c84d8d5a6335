"""Members of one GP under several hyperparameters come in; their mixture's moments go out.

A member is a function of feature rows; the derivative by the features is worked out by hand and
handed to autograd as one step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Member:
    """One vector of hyperparameters, shape (p,), the GP conditioned under it, and its share."""

    theta: Array
    conditioned: Conditioned
    share: float


def gram(kernels: Sequence[Kernel], theta: Array, left: list[Any], right: list[Any]) -> Array:
    """Covariances of rows and rows, shape (n, m), given what each kernel knows of them."""
    parts = zip(kernels, left, right, strict=True)
    return np.sum([kernel.gram(theta, a, b)[0] for kernel, a, b in parts], axis=0)


class Mixture:
    """The equal or weighted mixture of members that have seen the same rows."""

    def __init__(self, kernels: Sequence[Kernel], seen: Table, members: Sequence[Member]) -> None:
        self.kernels, self.seen, self.members = kernels, seen, list(members)
        self.features = [kernel.features(seen) for kernel in kernels]

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
        known = [kernel.features(rows) for kernel in self.kernels]
        mean, second = torch.zeros(len(rows.features)), torch.zeros(())
        moments = []
        for member in self.members:
            cross = torch.from_numpy(gram(self.kernels, member.theta, known, self.features))
            K = torch.from_numpy(gram(self.kernels, member.theta, known, known))
            moments.append((member.share, *member.conditioned.joint(cross, K)))
        mean = torch.stack([share * m for share, m, _ in moments]).sum(0)
        second = torch.stack([s * (c + torch.outer(m - mean, m - mean)) for s, m, c in moments])
        return mean, second.sum(0)

    def moments(self, rows: Table) -> tuple[Array, Array, Back]:
        """Mean and variance, shape (n,) each, and the way back to the features."""
        known = [kernel.features(rows) for kernel in self.kernels]
        parts = [self._member(member, known, rows.features.shape) for member in self.members]
        shares = [member.share for member in self.members]
        if len(parts) == 1:
            return parts[0]
        pairs = list(zip(shares, parts, strict=True))
        mean = np.sum([share * part[0] for share, part in pairs], axis=0)
        variance = np.sum([s * (part[1] + (part[0] - mean) ** 2) for s, part in pairs], axis=0)

        def back(by_mean: Array, by_variance: Array) -> Array:
            total = np.zeros(rows.features.shape)
            for share, (own_mean, _, own_back) in pairs:
                slope = by_mean + 2.0 * by_variance * (own_mean - mean)
                total += own_back(share * slope, share * by_variance)
            return total

        return mean, variance, back

    def _member(
        self, member: Member, known: list[Any], shape: tuple[int, ...]
    ) -> tuple[Array, Array, Back]:
        theta, conditioned = member.theta, member.conditioned
        triples = list(zip(self.kernels, known, self.features, strict=True))
        grams = [kernel.gram(theta, here, there) for kernel, here, there in triples]
        diagonals = [kernel.diagonal(theta, here) for kernel, here, _ in triples]
        cross = np.sum([K for K, _ in grams], axis=0)
        factor, alpha = conditioned.factor.numpy(), conditioned.alpha.numpy()
        solved = _solve(factor, cross.T)
        raw = np.sum([K for K, _ in diagonals], axis=0) - np.einsum("nm,nm->m", solved, solved)

        def back(by_mean: Array, by_variance: Array) -> Array:
            by_variance = np.where(raw > MIN_VARIANCE, by_variance, 0.0)
            weights = _solve(factor, solved, is_transposed=True).T
            by_gram = by_mean[:, None] * alpha - 2.0 * by_variance[:, None] * weights
            by_features = np.zeros(shape)
            for (_, pull), (_, pull_diagonal) in zip(grams, diagonals, strict=True):
                pull(by_gram, by_features)
                pull_diagonal(by_variance, by_features)
            return by_features

        return cross @ alpha, np.maximum(raw, MIN_VARIANCE), back


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


def _solve(factor: Array, right: Array, is_transposed: bool = False) -> Array:
    """L^-1 or L^-T times ``right`` for a lower factor L in row order, shape (n, m)."""
    # LAPACK reads rows as columns, so L arrives as its transpose, an upper factor.
    solved, _ = lapack.dtrtrs(factor.T, right, lower=0, trans=0 if is_transposed else 1)
    result: Array = solved
    return result
