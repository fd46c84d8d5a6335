"""A kernel matrix as a function of hyperparameters comes in; their posterior density goes out."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.surrogates.kernels import Priors
from nasbo.surrogates.maximum import FAILED

Array = NDArray[np.float64]
Gram = Callable[[Tensor], Tensor]
"""Hyperparameters, shape (p,), to the covariance of the rows without noise, shape (n, n)."""

NOISE = (-8.0, 3.0)
"""Prior mean and sd of the log noise variance of standardised scores.

As wide as that because the papers of these models have no prior: on functions without noise the
variance must be able to vanish, or the last digits of an optimum are never seen.
"""
JITTER = 1e-9
MAX_FIT_ROWS = 300
"""Beyond this many rows the hyperparameters come from an even selection of them."""


class Marginal:
    """Negative log posterior density of hyperparameters, -log p(z | theta) - log p(theta).

    Only the kernel matrix goes through autograd: the derivative of the likelihood by it is
    (K^-1 - K^-1 z z' K^-1) / 2.

    Args:
        gram: the kernel matrix as a function of the hyperparameters.
        z: standardised scores, shape (n,).
        priors: Gaussian priors of the hyperparameters.
        noise: place of the log noise variance among them.
    """

    def __init__(self, gram: Gram, z: Tensor, priors: Priors, noise: int) -> None:
        self._gram, self._z, self._noise = gram, z, noise
        self._means, self._sds = np.array(priors.means), np.array(priors.sds)

    def value(self, theta: Array) -> float:
        """The density at ``theta`` without its gradient."""
        with torch.no_grad():
            return self._solve(self._gram(torch.from_numpy(theta)), theta)[0]

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient, shape (p,)."""
        leaf = torch.from_numpy(np.array(theta)).requires_grad_()
        K = self._gram(leaf)
        value, by_kernel = self._solve(K.detach(), theta)
        if by_kernel is None:
            return value, np.zeros_like(theta)
        gradient = np.zeros_like(theta)
        if K.requires_grad:
            (slope,) = torch.autograd.grad(K, leaf, by_kernel)
            gradient += slope.numpy()
        gradient[self._noise] += math.exp(theta[self._noise]) * float(by_kernel.trace())
        return value, gradient + (theta - self._means) / self._sds**2

    def _solve(self, K: Tensor, theta: Array) -> tuple[float, Tensor | None]:
        n = len(K)
        noise = math.exp(theta[self._noise]) + JITTER
        factor, failed = torch.linalg.cholesky_ex(K + noise * torch.eye(n, dtype=K.dtype))
        if int(failed) or not bool(torch.isfinite(factor).all()):
            return FAILED, None
        inverse = torch.cholesky_inverse(factor)
        alpha = inverse @ self._z
        away = (theta - self._means) / self._sds
        value = 0.5 * float(self._z @ alpha) + float(factor.diagonal().log().sum())
        value += 0.5 * n * math.log(2 * math.pi) + 0.5 * float(away @ away)
        return value, 0.5 * (inverse - torch.outer(alpha, alpha))


def fit_rows(n: int) -> NDArray[np.intp]:
    """Places of the rows that decide the hyperparameters: all, or evenly thinned ones."""
    return np.unique(np.linspace(0, n - 1, min(n, MAX_FIT_ROWS)).round().astype(np.intp))
