"""Evidence of hyperparameters on pairs of active units (see ``nasbo.gp.units``).

The kernel matrix is linear in the distinct values that its parts take on pairs of active units:
``K = incidence @ values``. Pairs of equal distances (most of them, where the blocks of a network
consist of choices) are counted once, and the gradient is analytic.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from nasbo.gp.conditioning import FitError
from nasbo.gp.curves import CurvePairs
from nasbo.gp.fit import NegativeLogPosterior, cholesky, inverse_of
from nasbo.gp.kernels import Matern
from nasbo.gp.priors import Priors
from nasbo.gp.repeats import Repeats

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Pull = Callable[[Array, Array], None]
"""Takes the derivative of a loss by each value, and adds to that by the hyperparameters."""

MORE_JITTER = (0.0, 1e-4, 1e-2)
"""As little as will do is added: a search that meets a point without a value may end there."""


@dataclass(frozen=True)
class PairTerm(ABC):
    """A kernel's share of the kernel matrix, on p pairs of rows.

    Attributes:
        cells: cell i * n + j of each pair, shape (p,).
        numbers: what the covariance of a pair is a function of, k numbers each, shape (k, p).
    """

    cells: Indices
    numbers: Array

    @abstractmethod
    def evaluate(self, theta: Array) -> tuple[Array, Pull]:
        """Covariances of the pairs, shape (p,), and the way back to the hyperparameters.

        Args:
            theta: the hyperparameters, shape (n_parameters,).
        """

    def compress(self) -> tuple[Self, Indices]:
        """The distinct pairs alone, and for each pair the index of its like among them."""
        # Irrational factors give different pairs different sums; rounding gathers float noise.
        factors = np.sqrt(np.arange(2.0, 2.0 + len(self.numbers)) * 1.7320508 + 0.1234567)
        key = np.round(sum(f * row for f, row in zip(factors, self.numbers, strict=True)), 10)
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        return replace(self, numbers=self.numbers[:, first]), inverse


@dataclass(frozen=True)
class MaternTerm(PairTerm):
    """Matérn-5/2 of the distance; ``numbers`` are squared distances per lengthscale.

    Attributes:
        scales: indices of the log lengthscales, shape (n_scales,).
        weight: index of the log weight.
    """

    scales: Indices
    weight: int

    def evaluate(self, theta: Array) -> tuple[Array, Pull]:
        matern, pull_distances = self.matern(theta)

        def pull(by_value: Array, gradient: Array) -> None:
            gradient[self.weight] += matern.values @ by_value
            pull_distances(matern.slopes() * by_value, gradient)

        return matern.values, pull

    @cached_property
    def distances(self) -> Array:
        """Squared distances per lengthscale, shape (n_scales, p); without gaps, for speed."""
        return np.asfortranarray(self.numbers[: len(self.scales)])

    def matern(self, theta: Array) -> tuple[Matern, Pull]:
        """The kernel, and the way back from the scaled squared distances to the lengthscales."""
        distances, inverse_squares = self.distances, np.exp(-2.0 * theta[self.scales])

        def pull(by_distance: Array, gradient: Array) -> None:
            gradient[self.scales] -= 2.0 * inverse_squares * (distances @ by_distance)

        return Matern.of(inverse_squares @ distances, math.exp(theta[self.weight])), pull


@dataclass(frozen=True)
class SharedTerm(MaternTerm):
    """Matérn-5/2 of units of one type, weighted by how near they are to each other.

    The last two rows of ``numbers`` say whether the units are the same one, and their distance.

    Attributes:
        rho: index of the logit of what other units share.
        reach: index of the logarithm of how far that goes.
    """

    rho: int
    reach: int

    def evaluate(self, theta: Array) -> tuple[Array, Pull]:
        matern, pull_distances = self.matern(theta)
        same, gap = self.numbers[-2:]
        rho = 1.0 / (1.0 + math.exp(-theta[self.rho]))
        reach = math.exp(theta[self.reach])
        near = np.exp(-gap / reach)
        relation = (1.0 - rho) * same + rho * near
        values = relation * matern.values

        def pull(by_value: Array, gradient: Array) -> None:
            gradient[self.weight] += values @ by_value
            gradient[self.rho] += (rho * (1.0 - rho) * (near - same) * matern.values) @ by_value
            gradient[self.reach] += (rho / reach * near * gap * matern.values) @ by_value
            pull_distances(relation * matern.slopes() * by_value, gradient)

        return values, pull


class CountedTerm:
    """A kernel's share of the kernel matrix as C T C', T being covariances of few states.

    Args:
        counts: C, how often each row has each state, shape (n, d).
        states: the term of all pairs of states.
    """

    def __init__(self, counts: Array, states: PairTerm) -> None:
        self._counts = counts
        self._states, self._which = states.compress()

    def evaluate(self, theta: Array) -> tuple[Array, Pull]:
        """The share, shape (n, n), and the way back from the matrix to the hyperparameters."""
        values, pull_states = self._states.evaluate(theta)
        counts, shape = self._counts, (self._counts.shape[1],) * 2

        def pull(by_matrix: Array, gradient: Array) -> None:
            by_state = counts.T @ (by_matrix @ counts)
            by_value: Array = np.bincount(self._which, by_state.ravel(), len(values)).astype(float)
            pull_states(by_value, gradient)

        share: Array = counts @ values[self._which].reshape(shape) @ counts.T
        return share, pull


class PairEvidence(NegativeLogPosterior):
    """Negative log posterior density for terms on pairs of rows i <= j and on states of rows.

    A fit evaluates it some 60 times on small matrices. On 100 rows of ``nas_cifar10`` value and
    gradient are 4 to 5 times as fast as autograd on the same pairs, and 34 to 47 times as fast as
    autograd of the same kernel on all rows.

    Args:
        terms: which sum up to the kernel matrix; one at least is of pairs.
        y: standardised scores, shape (n,).
        priors, noise, repeats: as in the base class; one value for each score if not given.
        curves: where rows are values at different steps of trainings.
    """

    jitter = 1e-8

    def __init__(
        self,
        terms: Sequence[PairTerm | CountedTerm],
        y: Array,
        priors: Priors,
        noise: int,
        repeats: Repeats | None = None,
        curves: CurvePairs | None = None,
    ) -> None:
        super().__init__(priors, noise, Repeats.none(len(y)) if repeats is None else repeats)
        self._y, self._curves = y, curves
        self._counted = [term for term in terms if isinstance(term, CountedTerm)]
        pairs = [term for term in terms if isinstance(term, PairTerm)]
        compressed = [term.compress() for term in pairs]
        self._terms = [term for term, _ in compressed]
        n, cells = len(y), [term.cells for term in pairs]
        ends = np.cumsum([0] + [term.numbers.shape[1] for term in self._terms])
        self._slices = [slice(a, b) for a, b in itertools.pairwise(ends)]
        columns = [inverse + a for (_, inverse), a in zip(compressed, ends[:-1], strict=True)]
        ones = np.ones(sum(map(len, cells)))
        where = (np.concatenate(cells), np.concatenate(columns))
        self._incidence = scipy.sparse.csr_matrix((ones, where), shape=(n * n, int(ends[-1])))
        # A pair of different rows stands for two cells of the symmetric matrix.
        self._double = (2.0 * np.triu(np.ones((n, n)), 1) + np.eye(n)).ravel()

    def likelihood(self, theta: Array, noise: float, gradient: Array) -> tuple[float, float]:
        n, y = len(self._y), self._y
        parts = [term.evaluate(theta) for term in self._terms]
        K = (self._incidence @ np.concatenate([values for values, _ in parts])).reshape(n, n)
        K = np.triu(K) + np.triu(K, 1).T
        counted = [term.evaluate(theta) for term in self._counted]
        for share, _ in counted:
            K += share
        pull_curves = None
        if self._curves is not None:
            K, pull_curves = self._curves.apply(theta, K)
        K[np.diag_indices(n)] += noise * self.shares
        factor = _factor(K)
        inverse = inverse_of(factor)
        alpha = inverse @ y
        outer = 0.5 * (inverse - np.outer(alpha, alpha))
        by_configs = outer if pull_curves is None else pull_curves(outer, gradient)
        per_value = self._incidence.T @ (by_configs.ravel() * self._double)
        for cut, (_, pull) in zip(self._slices, parts, strict=True):
            pull(per_value[cut], gradient)
        for _, pull in counted:
            pull(by_configs, gradient)
        value = 0.5 * y @ alpha + np.log(factor.diagonal()).sum()
        return float(value), float(np.trace(outer * self.shares))


def _factor(K: Array) -> Array:
    """The lower Cholesky factor, shape (n, n), of K with as much jitter added as it takes."""
    for jitter in MORE_JITTER:
        K[np.diag_indices(len(K))] += jitter
        try:
            return cholesky(K)
        except FitError as error:
            failure = error
    raise failure


def grouped_distances(
    values: Array, left: Indices, right: Indices, scales: Sequence[int] | Indices
) -> tuple[Array, Indices]:
    """Squared distances of pairs of rows per lengthscale, and the indices of the lengthscales.

    Args:
        values: the rows, shape (n, n_features).
        left, right: the rows of each pair, shape (p,) each.
        scales: index of the log lengthscale of each feature, shape (n_features,).

    Returns:
        Shapes (n_scales, p) and (n_scales,).
    """
    distinct, groups = np.unique(np.asarray(scales, dtype=np.intp), return_inverse=True)
    distances = np.zeros((len(distinct), len(left)))
    for feature, group in enumerate(groups):
        column = values[:, feature]
        distances[group] += (column[left] - column[right]) ** 2
    return distances, distinct
