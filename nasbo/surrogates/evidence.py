"""Pairs of observed units come in; the posterior density of hyperparameters goes out.

The kernel matrix is linear in the distinct values that its parts take on pairs of active units:
``K = incidence @ values``. Pairs of equal distances (most of them, where blocks consist of
choices) are counted once, and the gradient is analytic.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.linalg import lapack

from nasbo.surrogates.kernels import Priors
from nasbo.surrogates.maximum import FAILED
from nasbo.surrogates.pairs import PairTerm, compress

Array = NDArray[np.float64]

JITTER = 1e-8
MORE_JITTER = (0.0, 1e-4, 1e-2)
"""As little as will do is added: a search that meets a place without a value may end there."""


class Evidence:
    """Negative log posterior density of the hyperparameters and its gradient."""

    def __init__(self, terms: Sequence[PairTerm], y: Array, priors: Priors, noise: int) -> None:
        self._y, self._noise = y, noise
        self._means, self._sds = np.array(priors.means), np.array(priors.sds)
        compressed = [compress(term) for term in terms]
        self._terms = [term for term, _ in compressed]
        n, cells = len(y), [term.cells for term in terms]
        ends = np.cumsum([0] + [term.distances.shape[1] for term in self._terms])
        self._slices = [slice(a, b) for a, b in itertools.pairwise(ends)]
        columns = [inverse + a for (_, inverse), a in zip(compressed, ends[:-1], strict=True)]
        ones = np.ones(sum(map(len, cells)))
        where = (np.concatenate(cells), np.concatenate(columns))
        self._incidence = scipy.sparse.csr_matrix((ones, where), shape=(n * n, int(ends[-1])))
        # A pair of different rows stands for two cells of the symmetric matrix.
        self._double = (2.0 * np.triu(np.ones((n, n)), 1) + np.eye(n)).ravel()

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient, shape (n_parameters,), at ``theta``."""
        n, y = len(self._y), self._y
        parts = [_evaluate(term, theta) for term in self._terms]
        K = (self._incidence @ np.concatenate([part.values for part in parts])).reshape(n, n)
        K = np.triu(K) + np.triu(K, 1).T
        noise = math.exp(theta[self._noise])
        K[np.diag_indices(n)] += noise + JITTER
        factor = _factor(K)
        if factor is None:
            return FAILED, np.zeros_like(theta)
        inverse, _ = lapack.dpotri(factor, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        alpha = inverse @ y
        away = (theta - self._means) / self._sds
        fit = 0.5 * y @ alpha + np.log(factor.diagonal()).sum() + 0.5 * n * math.log(2 * math.pi)
        outer = 0.5 * (inverse - np.outer(alpha, alpha))
        gradient = away / self._sds
        gradient[self._noise] += noise * np.trace(outer)
        per_value = self._incidence.T @ (outer.ravel() * self._double)
        for cut, part in zip(self._slices, parts, strict=True):
            part.add_gradient(gradient, per_value[cut])
        return float(fit + 0.5 * away @ away), gradient


def _factor(K: Array) -> Array | None:
    """The lower Cholesky factor, shape (n, n), of K with as much jitter added as it takes."""
    for jitter in MORE_JITTER:
        K[np.diag_indices(len(K))] += jitter
        factor, failed = lapack.dpotrf(K, lower=1)
        if not failed:
            lower: Array = factor
            return lower
    return None


@dataclass(frozen=True)
class _Part:
    """A term at some hyperparameters: its values and what their derivatives need."""

    term: PairTerm
    values: Array
    inverse_squares: Array
    by_distance: Array
    by_rho: Array | None = None
    by_reach: Array | None = None

    def add_gradient(self, gradient: Array, outer: Array) -> None:
        """Add this term's share, given the derivative by each of its values."""
        term = self.term
        gradient[term.weight] += self.values @ outer
        gradient[term.scales] += self.inverse_squares * (
            term.distances @ (self.by_distance * outer)
        )
        if term.sharing is not None and self.by_rho is not None and self.by_reach is not None:
            gradient[term.sharing.rho] += self.by_rho @ outer
            gradient[term.sharing.reach] += self.by_reach @ outer


def _evaluate(term: PairTerm, theta: Array) -> _Part:
    inverse_squares = np.exp(-2.0 * theta[term.scales])
    d = np.sqrt(5.0 * (inverse_squares @ term.distances))
    decay = math.exp(theta[term.weight]) * np.exp(-d)
    values = decay * (1.0 + d + d * d / 3.0)
    by_distance = (5.0 / 3.0) * decay * (1.0 + d)
    if (sharing := term.sharing) is None:
        return _Part(term, values, inverse_squares, by_distance)
    rho = 1.0 / (1.0 + math.exp(-theta[sharing.rho]))
    reach = math.exp(theta[sharing.reach])
    near = np.exp(-sharing.gap / reach)
    relation = (1.0 - rho) * sharing.same + rho * near
    by_rho = rho * (1.0 - rho) * (near - sharing.same) * values
    by_reach = rho / reach * near * sharing.gap * values
    return _Part(term, relation * values, inverse_squares, relation * by_distance, by_rho, by_reach)
