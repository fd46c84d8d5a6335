"""Evidence of a tree GP's hyperparameters, eq. 3 of Jenatton et al. (2017), with its gradient.

Each leaf has a factor of its own rows and all leaves share one of the weights: O(d^3 + sum n_p^3),
value and gradient alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.gp.fit import NegativeLogPosterior, cholesky, inverse_of
from nasbo.gp.kernels import KernelName
from nasbo.gp.pairs import EvaluatedTerm, Indices, PairTerm, evaluate
from nasbo.gp.priors import Priors

Array = NDArray[np.float64]
Features = Callable[[Tensor], Tensor]
"""Hyperparameters, shape (p,), to z of all rows before it is scaled, shape (n, d)."""


@dataclass(frozen=True)
class LeafRows:
    """Scores of the rows of one leaf, shape (n_p,), and their pairs, all n_p * n_p.

    Leaves without parameters of their own have no kernel: their rows may stand together.
    """

    y: Array
    pairs: PairTerm | None


@dataclass(frozen=True)
class TreeRows:
    """All rows.

    Attributes:
        leaves: the rows of the leaves.
        features: z of all rows, in the order of the leaves.
        variances: index of the log variance of each weight, shape (d,).
    """

    leaves: Sequence[LeafRows]
    features: Features
    variances: Indices


@dataclass(frozen=True)
class _Solved:
    """A leaf at some hyperparameters, M = K + noise.

    Attributes:
        inverse: M^-1, shape (n_p, n_p), or its diagonal entry where there is no kernel.
        half_log_determinant: log |M| / 2.
        z: M^-1 Z', shape (n_p, d).
        kernel: covariances without noise, on all pairs; ``None`` without a kernel.
    """

    inverse: Array | float
    half_log_determinant: float
    z: Array
    kernel: EvaluatedTerm | None = None


class TreeEvidence(NegativeLogPosterior):
    """Negative log posterior density of the hyperparameters.

    Args:
        rows: what was observed.
        priors, noise: as in the base class.
        kernel: of the leaves.
    """

    def __init__(self, rows: TreeRows, priors: Priors, noise: int, kernel: KernelName) -> None:
        super().__init__(priors, noise, sum(len(leaf.y) for leaf in rows.leaves))
        self._leaves, self._features, self._variances = rows.leaves, rows.features, rows.variances
        self._kernel: KernelName = kernel
        self._ends = np.cumsum([len(leaf.y) for leaf in rows.leaves])[:-1]

    def likelihood(self, theta: Array, noise: float, gradient: Array) -> tuple[float, float]:
        hyper = torch.from_numpy(np.array(theta)).requires_grad_()
        raw = self._features(hyper)
        sds = np.exp(0.5 * theta[self._variances])
        z = np.split(raw.detach().numpy() * sds, self._ends)
        leaves = self._leaves
        solved = [self._solve(theta, noise, *pair) for pair in zip(leaves, z, strict=True)]
        factor = cholesky(np.eye(len(sds)) + sum(a.T @ b.z for a, b in zip(z, solved, strict=True)))
        covariance = inverse_of(factor)
        weights = covariance @ sum(a.z.T @ b.y for a, b in zip(solved, leaves, strict=True))
        # Sums of squares alone: y' M^-1 y less what the weights explain would cancel.
        residuals = [leaf.y - rows @ weights for leaf, rows in zip(leaves, z, strict=True)]
        alphas = [np.dot(one.inverse, r) for one, r in zip(solved, residuals, strict=True)]
        value = 0.5 * sum(a @ r for a, r in zip(alphas, residuals, strict=True))
        value += 0.5 * weights @ weights + np.log(factor.diagonal()).sum()
        value += sum(one.half_log_determinant for one in solved)
        by_z, by_noise = self._add_gradient(gradient, solved, alphas, (weights, covariance))
        if raw.requires_grad:
            (slope,) = torch.autograd.grad(raw, hyper, torch.from_numpy(by_z * sds))
            gradient += slope.numpy()
        return float(value), by_noise

    def _solve(self, theta: Array, noise: float, leaf: LeafRows, z: Array) -> _Solved:
        n = len(leaf.y)
        if leaf.pairs is None:
            return _Solved(1.0 / noise, 0.5 * n * math.log(noise), z / noise)
        kernel = evaluate(leaf.pairs, theta, self._kernel)
        M = kernel.values.reshape(n, n).copy()
        M.flat[:: n + 1] += noise
        factor = cholesky(M)
        inverse = inverse_of(factor)
        return _Solved(inverse, float(np.log(factor.diagonal()).sum()), inverse @ z, kernel)

    def _add_gradient(
        self,
        gradient: Array,
        solved: Sequence[_Solved],
        alphas: Sequence[Array],
        weights: tuple[Array, Array],
    ) -> tuple[Array, float]:
        """Add the likelihood's gradient; its derivative by z, (n, d), and by the noise is left.

        With C the covariance of all rows (eq. 4), the derivative by C is (C^-1 - a a') / 2 with
        a = C^-1 y. Only its blocks of one leaf are needed, and those C^-1 has in closed form:
        M^-1 - M^-1 Z' (weights' covariance) Z M^-1. ``weights`` are their mean and covariance.
        """
        by_noise, by_z, (mean, covariance) = 0.0, [], weights
        for one, alpha in zip(solved, alphas, strict=True):
            spread = one.z @ covariance
            by_z.append(spread - np.outer(alpha, mean))
            if one.kernel is None:
                trace = len(alpha) * one.inverse - (spread * one.z).sum() - alpha @ alpha
                by_noise += 0.5 * float(trace)
                continue
            by_cell = 0.5 * (one.inverse - spread @ one.z.T - np.outer(alpha, alpha))
            by_noise += float(np.trace(by_cell))
            one.kernel.add_gradient(gradient, by_cell.ravel())
        by_variance = 0.5 * (1.0 - covariance.diagonal() - mean**2)
        np.add.at(gradient, self._variances, by_variance)
        return np.concatenate(by_z), by_noise
