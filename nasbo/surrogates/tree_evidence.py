"""The rows of all leaves come in; the density of a tree GP's hyperparameters goes out.

This is eq. 3 of Jenatton et al. (2017) with its derivative. Each leaf has a factor of its own rows
and all leaves share one of the weights: O(d^3 + sum n_p^3), value and gradient alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import lapack
from torch import Tensor

from nasbo.surrogates.base import FitError
from nasbo.surrogates.correlations import KernelName, correlation_and_slope
from nasbo.surrogates.kernels import Priors
from nasbo.surrogates.marginal import JITTER
from nasbo.surrogates.maximum import FAILED

Array = NDArray[np.float64]
Places = NDArray[np.intp]
Features = Callable[[Tensor], Tensor]
"""Hyperparameters, shape (p,), to z of all rows before it is scaled, shape (n, d)."""


@dataclass(frozen=True)
class LeafPairs:
    """Pairs of rows of one leaf.

    Attributes:
        distances: squared distances per lengthscale, shape (k, n_p * n_p).
        scales: places of the log lengthscales, shape (k,).
        weight: place of the log variance.
    """

    distances: Array
    scales: Places
    weight: int


@dataclass(frozen=True)
class LeafRows:
    """Scores of the rows of one leaf, shape (n_p,), and their pairs.

    Leaves without parameters of their own have no kernel: their rows may stand together.
    """

    y: Array
    pairs: LeafPairs | None


@dataclass(frozen=True)
class TreeRows:
    """All rows.

    Attributes:
        leaves: the rows of the leaves.
        features: z of all rows, in the order of the leaves.
        places: place of the log variance of each weight, shape (d,).
    """

    leaves: Sequence[LeafRows]
    features: Features
    places: Places


@dataclass(frozen=True)
class _Solved:
    """A leaf at some hyperparameters, M = K + noise.

    Attributes:
        inverse: M^-1, shape (n_p, n_p), or its diagonal entry where there is no kernel.
        half_log_determinant: log |M| / 2.
        z: M^-1 Z', shape (n_p, d).
        K: covariances without noise, shape (n_p, n_p); ``None`` without a kernel.
        slope: their derivative by the squared distance.
    """

    inverse: Array | float
    half_log_determinant: float
    z: Array
    K: Array | None = None
    slope: Array | None = None

    def times_inverse(self, rows: Array) -> Array:
        """M^-1 of rows, shape (n_p, ...)."""
        product: Array = self.inverse * rows if self.K is None else self.inverse @ rows
        return product


@dataclass(frozen=True)
class _Weights:
    """Posterior of the weights: mean, shape (d,), and covariance, shape (d, d)."""

    mean: Array
    covariance: Array


class TreeEvidence:
    """Negative log posterior density of the hyperparameters and its gradient.

    Args:
        rows: what was observed.
        priors: Gaussian priors of all hyperparameters.
        noise: place of the log noise variance.
        kernel: of the leaves.
    """

    def __init__(self, rows: TreeRows, priors: Priors, noise: int, kernel: KernelName) -> None:
        self._leaves, self._features, self._places = rows.leaves, rows.features, rows.places
        self._means, self._sds = np.array(priors.means), np.array(priors.sds)
        self._noise = noise
        self._kernel: KernelName = kernel
        self._ends = np.cumsum([len(leaf.y) for leaf in rows.leaves])[:-1]

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient, shape (p,), at ``theta``."""
        hyper = torch.from_numpy(np.array(theta)).requires_grad_()
        raw = self._features(hyper)
        sds = np.exp(0.5 * theta[self._places])
        z = np.split(raw.detach().numpy() * sds, self._ends)
        try:
            solved = [self._solve(theta, *pair) for pair in zip(self._leaves, z, strict=True)]
            precision = np.eye(len(sds)) + sum(
                rows.T @ leaf.z for rows, leaf in zip(z, solved, strict=True)
            )
            factor = cholesky(precision)
        except FitError:
            return FAILED, np.zeros_like(theta)
        covariance = inverse_of(factor)
        weights = covariance @ sum(a.z.T @ b.y for a, b in zip(solved, self._leaves, strict=True))
        # Sums of squares alone: y' M^-1 y less what the weights explain would cancel.
        residuals = [leaf.y - rows @ weights for leaf, rows in zip(self._leaves, z, strict=True)]
        alphas = [one.times_inverse(r) for one, r in zip(solved, residuals, strict=True)]
        away = (theta - self._means) / self._sds
        value = 0.5 * sum(a @ r for a, r in zip(alphas, residuals, strict=True))
        value += 0.5 * (weights @ weights + away @ away) + np.log(factor.diagonal()).sum()
        value += sum(one.half_log_determinant for one in solved)
        value += 0.5 * len(raw) * math.log(2 * math.pi)
        gradient = away / self._sds
        by_z = self._add_gradient(gradient, theta, solved, alphas, _Weights(weights, covariance))
        if raw.requires_grad:
            (slope,) = torch.autograd.grad(raw, hyper, torch.from_numpy(by_z * sds))
            gradient += slope.numpy()
        return float(value), gradient

    def _solve(self, theta: Array, leaf: LeafRows, z: Array) -> _Solved:
        noise, n = math.exp(theta[self._noise]) + JITTER, len(leaf.y)
        if leaf.pairs is None:
            return _Solved(1.0 / noise, 0.5 * n * math.log(noise), z / noise)
        pairs, variance = leaf.pairs, math.exp(theta[leaf.pairs.weight])
        squared = np.exp(-2.0 * theta[pairs.scales]) @ pairs.distances
        correlation, slope = correlation_and_slope(self._kernel, squared.reshape(n, n))
        K = variance * correlation
        M = K.copy()
        M.flat[:: n + 1] += noise
        factor = cholesky(M)
        inverse = inverse_of(factor)
        determinant = float(np.log(factor.diagonal()).sum())
        return _Solved(inverse, determinant, inverse @ z, K, variance * slope)

    def _add_gradient(
        self,
        gradient: Array,
        theta: Array,
        solved: Sequence[_Solved],
        alphas: Sequence[Array],
        weights: _Weights,
    ) -> Array:
        """Add the likelihood's gradient; its derivative by z, shape (n, d), goes out.

        With C the covariance of all rows (eq. 4), the derivative by C is (C^-1 - a a') / 2 with
        a = C^-1 y. Only its blocks of one leaf are needed, and those C^-1 has in closed form:
        M^-1 - M^-1 Z' (weights' covariance) Z M^-1.
        """
        noise, by_z = math.exp(theta[self._noise]), []
        for leaf, one, alpha in zip(self._leaves, solved, alphas, strict=True):
            spread = one.z @ weights.covariance
            by_z.append(spread - np.outer(alpha, weights.mean))
            if leaf.pairs is None or one.K is None or one.slope is None:
                trace = len(alpha) * one.inverse - (spread * one.z).sum() - alpha @ alpha
                gradient[self._noise] += 0.5 * noise * float(trace)
                continue
            by_cell = 0.5 * (one.inverse - spread @ one.z.T - np.outer(alpha, alpha))
            gradient[self._noise] += noise * np.trace(by_cell)
            gradient[leaf.pairs.weight] += (by_cell * one.K).sum()
            by_distance = leaf.pairs.distances @ (by_cell * one.slope).ravel()
            gradient[leaf.pairs.scales] -= 2 * np.exp(-2 * theta[leaf.pairs.scales]) * by_distance
        by_variance = 0.5 * (1.0 - weights.covariance.diagonal() - weights.mean**2)
        np.add.at(gradient, self._places, by_variance)
        return np.concatenate(by_z)


def cholesky(K: Array) -> Array:
    """The lower factor of a symmetric matrix, shape (n, n).

    Raises:
        FitError: it is not positive definite.
    """
    factor, failed = lapack.dpotrf(K.T, lower=1)
    if failed or not np.isfinite(factor).all():
        raise FitError("the matrices of the leaves and of the weights must be positive definite")
    lower: Array = factor
    return lower


def inverse_of(factor: Array) -> Array:
    """The inverse, shape (n, n), of a matrix given by its lower factor."""
    half, _ = lapack.dpotri(factor, lower=1)  # zeros above the diagonal, as in the factor
    inverse: Array = half + half.T
    inverse.flat[:: len(half) + 1] *= 0.5
    return inverse
