"""Surrogate protocol and base classes of Gaussian process surrogates."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.gp.conditioning import Conditioned, FitError
from nasbo.gp.fit import JITTER, MAX_FIT_ROWS, DenseEvidence, find_map, thinned
from nasbo.gp.kernels import ARDKernel
from nasbo.gp.priors import NOISE, Priors
from nasbo.gp.repeats import Repeats
from nasbo.gp.rows import Batches, as_batches, batches_of, joined
from nasbo.gp.transform import Scale, model_scale
from nasbo.history.data import Data
from nasbo.space import Space, Subspace

__all__ = ["GP", "Batches", "ExactGP", "FitError", "KernelGP", "Surrogate", "as_batches",
           "batches_of"]  # fmt: skip

Array = NDArray[np.float64]


class Surrogate(Protocol):
    """A model of the score over all subspaces.

    Attributes:
        scale: maps between scores and the scale on which the model was fitted.
    """

    scale: Scale

    def fit(self, data: Data) -> None:
        """Fit to the data; raises ``FitError`` if no usable model results."""

    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        """Mean and variance of the score of rows of any subspaces, in one pass.

        Args:
            batches: the rows, n in all, in the unit cubes of their subspaces.

        Returns:
            Mean and variance of the noise-free score, shape (n,) each, float64, differentiable in
            the rows, on the scale on which the surrogate was fitted.
        """

    def posterior(self, subspace: Subspace, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance in one subspace, shape (n,) each, for ``x`` of shape (n, n_free)."""
        return self.posteriors([(subspace, x)])

    def joint_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        """Mean, shape (n,), and covariance, shape (n, n), of rows of any subspaces."""

    def observed_means(self) -> Tensor:
        """Posterior means of the configs it was fitted on, without pending ones, (n,)."""

    def with_pending(self, subspaces: Sequence[Subspace], x: Sequence[Array]) -> Surrogate:
        """The model conditioned also on pending configs, at their posterior
        mean (Kriging believer).
        """

    def lengthscales(self) -> dict[str, float]:
        """Lengthscales by parameter, in the unit cube, where two different
        choices are at distance 1.

        The shortest if a name has several; empty if the model has none per parameter.
        """
        return {}

    def correlations(self, subspace: Subspace, x: Tensor, others: Batches) -> Tensor | None:
        """Prior correlations of the score of one config with those of others.

        Args:
            subspace: of the config.
            x: the config, shape (1, n_free).
            others: n rows of any subspaces.

        Returns:
            Shape (n,); ``None`` if the model has no covariance.
        """
        return None


class GP(Surrogate):
    """A GP on standardised scores.

    Attributes:
        is_straightened: whether skewed scores are log-transformed.
        repeats: of the rows that it is fitted to or conditioned on; ``None`` if each score is one
            value.
    """

    is_straightened = False
    repeats: Repeats | None = None
    _data: tuple[list[Subspace], list[Array], Tensor]

    def fit(self, data: Data) -> None:
        y = np.asarray(data.scores, dtype=np.float64)
        if len(y) < 2 or not np.isfinite(y).all():
            raise FitError(f"at least two finite scores must be given, got {y!r}")
        z, self.scale = model_scale(y, data.n_design, self.is_straightened)
        self.repeats = Repeats.of_data(data, z, self.scale)
        self.learn(list(data.subspaces), list(data.x), torch.from_numpy(z))
        with torch.no_grad():
            self._means = self.means_of(batches_of(data))

    @abstractmethod
    def learn(self, subspaces: list[Subspace], x: list[Array], z: Tensor) -> None:
        """Fit to standardised scores, shape (n,)."""

    @abstractmethod
    def condition(self, subspaces: list[Subspace], x: list[Array], z: Tensor) -> None:
        """Condition on rows and scores, shape (n,), with the present hyperparameters."""

    def repeats_of(self, n: int) -> Repeats:
        """The repeats of ``n`` rows; none if the model's repeats belong to a
        different number of rows.

        A copy of a fitted model may be conditioned on other rows, whose repeats are unknown.
        """
        if self.repeats is None or len(self.repeats) != n:
            return Repeats.none(n)
        return self.repeats

    def means_of(self, observed: Batches) -> Tensor:
        """Posterior means of the observed rows, shape (n,)."""
        return self.posteriors(observed)[0]

    def observed_means(self) -> Tensor:
        return self._means

    def with_pending(self, subspaces: Sequence[Subspace], x: Sequence[Array]) -> Self:
        """Condition anew on all rows of ``_data``: for models of several kernel matrices."""
        if not subspaces:
            return self
        extended = copy.copy(self)
        seen, rows, z = self._data
        with torch.no_grad():
            mean, _ = self.posteriors(as_batches(subspaces, x))
        extended.repeats = self.repeats_of(len(z)).extended(len(mean))
        extended.condition([*seen, *subspaces], [*rows, *x], torch.cat([z, mean]))
        return extended


class ExactGP(GP):
    """A zero-mean GP with one kernel matrix over all rows, in float64.

    Attributes:
        n_values: number of values that each score is the mean of, shape (n,).
    """

    n_values: Tensor

    @abstractmethod
    def features(self, batches: Batches) -> Any:
        """Features of rows for the kernel: a tensor or a tuple of tensors."""

    @abstractmethod
    def covariance(self, left: Any, right: Any) -> Tensor:
        """Covariances, shape (n, m), of rows given by their features."""

    def variance(self, rows: Any) -> Tensor:
        """Prior variances of rows given by their features, shape (n,)."""
        return self.covariance(rows, rows).diagonal()

    @abstractmethod
    def noise_variance(self) -> Tensor:
        """Variance of the noise of one value, a scalar."""

    def correlations(self, subspace: Subspace, x: Tensor, others: Batches) -> Tensor | None:
        one, rows = self.features([(subspace, x)]), self.features(others)
        scale = (self.variance(one) * self.variance(rows)).sqrt()
        return self.covariance(one, rows)[0] / scale

    def noisy(self, K: Tensor, n_values: Tensor) -> Tensor:
        """A kernel matrix, shape (n, n), plus the noise of means of
        ``n_values`` values, shape (n,).
        """
        return K + self.noise_variance() * n_values.reciprocal().diag()

    def condition(self, subspaces: list[Subspace], x: list[Array], z: Tensor) -> None:
        self.condition_on(self.features(as_batches(subspaces, x)), z)

    def condition_on(self, rows: Any, z: Tensor, repeats: Repeats | None = None) -> None:
        """Condition on the features and scores, shape (n,), of all rows.

        Args:
            rows: features.
            z: scores.
            repeats: of these rows; the model's own if not given.
        """
        repeats = self.repeats_of(len(z)) if repeats is None else repeats
        with torch.no_grad():
            self._seen, self.n_values = rows, torch.from_numpy(repeats.n_values)
            K = self.noisy(self.covariance(rows, rows), self.n_values)
            self._conditioned = Conditioned.on(K, z)

    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        rows = self.features(batches)
        cross = self.covariance(rows, self._seen)
        return self._conditioned.marginals(cross, self.variance(rows))

    def joint_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        rows = self.features(batches)
        cross = self.covariance(rows, self._seen)
        return self._conditioned.joint(cross, self.covariance(rows, rows))

    def with_pending(self, subspaces: Sequence[Subspace], x: Sequence[Array]) -> Self:
        if not subspaces:
            return self
        extended = copy.copy(self)
        with torch.no_grad():
            rows = self.features(as_batches(subspaces, x))
            cross, once = self.covariance(rows, self._seen), self.n_values.new_ones(len(x))
            K = self.noisy(self.covariance(rows, rows), once)
            extended._conditioned = self._conditioned.extended(cross, K)
            extended.n_values = torch.cat([self.n_values, once])
            extended._seen = joined(self._seen, rows)
        return extended


class KernelGP(ExactGP):
    """Exact GP with MAP hyperparameters and a kernel that is a torch function of them.

    A subclass sets ``kernel`` on features, shape (n, n_features), or overrides ``gram`` and
    ``diagonal``.

    Args:
        space: the space of all data.
    """

    kernel: ARDKernel

    def __init__(self, space: Space) -> None:
        self.space = space
        self.priors = Priors()
        (self.noise,) = self.priors.add(1, *NOISE)
        self.theta: Tensor

    def gram(self, theta: Tensor, left: Any, right: Any) -> Tensor:
        """Covariances, shape (n, m), under hyperparameters, shape (p,)."""
        return self.kernel.gram(theta, left, right)

    def diagonal(self, theta: Tensor, rows: Any) -> Tensor:
        """Variances, shape (n,), under hyperparameters, shape (p,)."""
        return self.kernel.variance(theta).expand(len(rows))

    def covariance(self, left: Any, right: Any) -> Tensor:
        return self.gram(self.theta, left, right)

    def variance(self, rows: Any) -> Tensor:
        return self.diagonal(self.theta, rows)

    def noise_variance(self) -> Tensor:
        return self.theta[self.noise].exp() + JITTER

    def learn(self, subspaces: list[Subspace], x: list[Array], z: Tensor) -> None:
        density = self.marginal(subspaces, x, z)
        self.theta = torch.from_numpy(find_map(density, self.priors))
        self.condition(subspaces, x, z)

    def marginal(self, subspaces: list[Subspace], x: list[Array], z: Tensor) -> DenseEvidence:
        """Negative log posterior of the hyperparameters given rows and scores, shape (n,)."""
        chosen = thinned(z.numpy(), MAX_FIT_ROWS)
        rows = self.features(as_batches([subspaces[i] for i in chosen], [x[i] for i in chosen]))
        some, repeats = z[torch.from_numpy(chosen)], self.repeats_of(len(z)).take(chosen)
        return DenseEvidence(
            lambda theta: self.gram(theta, rows, rows), some, self.priors, self.noise, repeats
        )
