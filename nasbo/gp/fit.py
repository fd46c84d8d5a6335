"""MAP fit of hyperparameters, noise variance included.

The attention deep-kernel GP of the paper does not use it: it is trained by gradient descent.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.optimize import minimize
from torch import Tensor

from nasbo.gp.conditioning import FitError
from nasbo.gp.priors import NOISY, Priors
from nasbo.gp.repeats import Repeats

Array = NDArray[np.float64]
Loss = Callable[[Array], tuple[float, Array]]
"""Negative log density and its gradient, shape (p,), as a function of
hyperparameters, shape (p,)."""
Gram = Callable[[Tensor], Tensor]
"""Covariance of the rows without noise, shape (n, n), as a function of
hyperparameters, shape (p,)."""

JITTER = 1e-9
MAX_FIT_ROWS = 300
"""Maximum number of rows that hyperparameters are fitted on; more are thinned."""
ITERATIONS = 60
TOLERANCE = 2e-5
"""Relative gain of a step at which the search ends: about 0.001 nats, far below what matters."""
BOUND_SDS = 5.0
FAILED = 1e6
"""Value of the loss where it cannot be computed."""


class NegativeLogPosterior(ABC):
    """Negative log posterior of hyperparameters, -log p(z | theta) - log p(theta).

    A subclass computes the likelihood of the scores. Where scores are means of several values, the
    likelihood of the deviations from those means is added here.

    Attributes:
        shares: noise variance of each score relative to that of one value, shape (n,).

    Args:
        priors: Gaussian priors of the hyperparameters.
        noise: index of the log noise variance among them.
        repeats: of the n scores.
    """

    jitter = JITTER

    def __init__(self, priors: Priors, noise: int, repeats: Repeats) -> None:
        self._means, self._sds, self.noise = np.array(priors.means), np.array(priors.sds), noise
        self._constant = 0.5 * len(repeats) * math.log(2 * math.pi)
        self.repeats, self.shares = repeats, 1.0 / repeats.n_values

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient, shape (p,), at ``theta``; ``FAILED`` if a factorisation fails."""
        gradient, variance = np.zeros_like(theta), math.exp(theta[self.noise])
        try:
            value, by_noise = self.likelihood(theta, variance + self.jitter, gradient)
        except FitError:
            return FAILED, np.zeros_like(theta)
        within, within_by_noise = self.repeats.likelihood(variance + self.jitter)
        value += within
        gradient[self.noise] += variance * (by_noise + within_by_noise)
        away = (theta - self._means) / self._sds
        value += self._constant + 0.5 * float(away @ away)
        return float(value), gradient + (theta - self._means) / self._sds**2

    def value(self, theta: Array) -> float:
        """The loss at ``theta`` without its gradient."""
        with torch.no_grad():
            return self(theta)[0]

    @abstractmethod
    def likelihood(self, theta: Array, noise: float, gradient: Array) -> tuple[float, float]:
        """Negative log likelihood up to a constant, and its derivative by the noise variance.

        Args:
            theta: hyperparameters, shape (p,).
            noise: variance of one value, jitter included; that of a score is its share of it.
            gradient: shape (p,); derivatives other than by the noise are added here.

        Raises:
            FitError: a matrix is not positive definite.
        """


class DenseEvidence(NegativeLogPosterior):
    """Negative log posterior for one dense kernel matrix over all rows.

    Only the kernel matrix goes through autograd. The derivative of the likelihood by it is (K^-1 -
        K^-1 z z' K^-1) / 2.

    Args:
        gram: the kernel matrix as a function of the hyperparameters.
        z: standardised scores, shape (n,).
        priors, noise, repeats: as in the base class; one value for each score if not given.
    """

    def __init__(
        self, gram: Gram, z: Tensor, priors: Priors, noise: int, repeats: Repeats | None = None
    ) -> None:
        super().__init__(priors, noise, Repeats.none(len(z)) if repeats is None else repeats)
        self._gram, self._z = gram, z
        self._noises = torch.from_numpy(self.shares)

    def likelihood(self, theta: Array, noise: float, gradient: Array) -> tuple[float, float]:
        leaf = torch.from_numpy(np.array(theta)).requires_grad_()
        K = self._gram(leaf)
        factor, failed = torch.linalg.cholesky_ex(K.detach() + noise * self._noises.diag())
        if int(failed) or not bool(torch.isfinite(factor).all()):
            raise FitError("the kernel matrix must be positive definite")
        inverse = torch.cholesky_inverse(factor)
        alpha = inverse @ self._z
        by_kernel = 0.5 * (inverse - torch.outer(alpha, alpha))
        if K.requires_grad:
            (slope,) = torch.autograd.grad(K, leaf, by_kernel)
            gradient += slope.numpy()
        value = 0.5 * float(self._z @ alpha) + float(factor.diagonal().log().sum())
        return value, float((by_kernel * self._noises).trace())


def find_map(loss: NegativeLogPosterior, priors: Priors) -> Array:
    """MAP estimate of the hyperparameters, shape (p,).

    The posterior often has two modes, one without noise and one that explains most of the scores as
        noise, and where the noise is small, the loss hardly changes with it. So the search starts
        twice: at the prior means, and there with much noise. If repeats show a noise, the first
        start has at least that much: far below it the loss is so steep that the search diverges.

    Raises:
        FitError: the loss is not finite anywhere on the way.
    """
    quiet, noisy = np.array(priors.means), np.array(priors.means)
    if shown := loss.repeats.variance:
        quiet[loss.noise] = max(quiet[loss.noise], math.log(shown))
    noisy[loss.noise] = NOISY
    ends = [minimise(loss, priors, start) for start in (quiet, noisy)]
    return min(ends, key=loss.value)


def minimise(
    loss: Loss, priors: Priors, start: Array | None = None, iterations: int = ITERATIONS
) -> Array:
    """Hyperparameters of a local minimum of the loss, shape (p,), by L-BFGS-B.

    Args:
        loss: a negative log posterior.
        priors: their standard deviations give the bounds.
        start: where the search begins, shape (p,); the means of the priors if not given.
        iterations: maximum number of iterations.

    Raises:
        FitError: the loss is not finite anywhere on the way.
    """
    means, sds = np.array(priors.means), np.array(priors.sds)
    reach = BOUND_SDS * sds
    result = minimize(
        loss,
        means if start is None else start,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(means - reach, means + reach, strict=True)),
        options={"maxiter": iterations, "maxfun": int(1.3 * iterations), "ftol": TOLERANCE},
    )
    if not np.isfinite(result.fun) or result.fun >= FAILED:
        raise FitError(f"the marginal likelihood must be finite, got {result.fun}")
    theta: Array = np.asarray(result.x, dtype=np.float64)
    return theta


def thinned(z: Array, n: int, n_best: int = 0) -> NDArray[np.intp]:
    """Indices of at most ``n`` rows: the ``n_best`` of largest ``z``, and
    the others evenly thinned.
    """
    if len(z) <= n:
        return np.arange(len(z))
    order = np.argsort(-z, kind="stable")
    best, rest = order[:n_best], np.sort(order[n_best:])
    others = rest[np.linspace(0, len(rest) - 1, n - n_best).astype(np.intp)]
    return np.sort(np.concatenate([best, others]))


def cholesky(K: Array) -> Array:
    """Lower Cholesky factor of a symmetric matrix, shape (n, n).

    Raises:
        FitError: it is not positive definite.
    """
    factor, failed = lapack.dpotrf(K.T, lower=1)
    if failed or not np.isfinite(factor).all():
        raise FitError("a matrix of covariances must be positive definite")
    lower: Array = factor
    return lower


def inverse_of(factor: Array) -> Array:
    """Inverse, shape (n, n), of a matrix with the given lower Cholesky factor."""
    half, _ = lapack.dpotri(factor, lower=1)  # zeros above the diagonal, as in the factor
    inverse: Array = half + half.T
    inverse.flat[:: len(half) + 1] *= 0.5
    return inverse
