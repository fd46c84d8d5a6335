"""What GPs with one kernel over all subspaces share: a subclass says features, gram, diagonal."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.history.data import Data
from nasbo.space import Space, Subspace
from nasbo.surrogates.base import Batches, FitError, Surrogate, as_batches, batches_of
from nasbo.surrogates.exact import Conditioned
from nasbo.surrogates.kernels import Priors
from nasbo.surrogates.marginal import JITTER, NOISE, Marginal, fit_rows
from nasbo.surrogates.maximum import maximise_density
from nasbo.surrogates.transform import Scale, model_scale

Array = NDArray[np.float64]


def standard_scores(observations: Data) -> tuple[Tensor, Scale]:
    """Scores with mean 0 and sd 1, shape (n,), and the way back; ``FitError`` if too few."""
    y = np.asarray(observations.scores, dtype=np.float64)
    if len(y) < 2 or not np.isfinite(y).all():
        raise FitError(f"at least two finite scores must be given, got {y!r}")
    z, scale = model_scale(y, observations.n_design, is_straightened=False)
    return torch.from_numpy(z), scale


class KernelGP(Surrogate):
    """Exact zero-mean GP on standardised scores, hyperparameters by MAP, in float64.

    Args:
        space: the space of all observations.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.priors = Priors()
        (self.noise,) = self.priors.add(1, *NOISE)

    @abstractmethod
    def features(self, batches: Batches) -> Any:
        """What the kernel needs to know of rows."""

    @abstractmethod
    def gram(self, theta: Tensor, left: Any, right: Any) -> Tensor:
        """Covariances, shape (n, m), of rows given by their features."""

    @abstractmethod
    def diagonal(self, theta: Tensor, rows: Any) -> Tensor:
        """Variances, shape (n,)."""

    def fit(self, observations: Data) -> None:
        """Find the hyperparameters by MAP and condition on all observations."""
        z, self.scale = standard_scores(observations)
        self.learn(list(observations.subspaces), list(observations.x), z)
        with torch.no_grad():
            mean, _ = self.posteriors(batches_of(observations))
        self._incumbent = float(mean.max())

    def learn(self, subspaces: list[Subspace], x: list[Array], z: Tensor) -> None:
        """The same for scores, shape (n,), that are standardised already."""
        density = self.marginal(subspaces, x, z)
        self.theta = torch.from_numpy(maximise_density(density, self.priors))
        with torch.no_grad():
            self.condition(subspaces, x, z)

    def marginal(self, subspaces: list[Subspace], x: list[Array], z: Tensor) -> Marginal:
        """The density of the hyperparameters given rows and scores, shape (n,)."""
        chosen = fit_rows(len(z))
        rows = self.features(as_batches([subspaces[i] for i in chosen], [x[i] for i in chosen]))
        some = z[torch.from_numpy(chosen)]
        return Marginal(lambda theta: self.gram(theta, rows, rows), some, self.priors, self.noise)

    def condition(self, subspaces: list[Subspace], x: list[Array], z: Tensor) -> None:
        """Take in rows and scores, shape (n,), under the present hyperparameters ``theta``."""
        self._subspaces, self._x, self._z = subspaces, x, z
        self._seen = self.features(as_batches(subspaces, x))
        K = self.gram(self.theta, self._seen, self._seen)
        self._conditioned = Conditioned.on(self.noisy(K), z)

    def noisy(self, K: Tensor) -> Tensor:
        """A kernel matrix, shape (n, n), with the noise on its diagonal."""
        variance = self.theta[self.noise].exp() + JITTER
        return K + variance * torch.eye(len(K), dtype=K.dtype)

    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        rows = self.features(batches)
        cross = self.gram(self.theta, rows, self._seen)
        return self._conditioned.marginals(cross, self.diagonal(self.theta, rows))

    def joint_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        rows = self.features(batches)
        cross = self.gram(self.theta, rows, self._seen)
        return self._conditioned.joint(cross, self.gram(self.theta, rows, rows))

    def incumbent(self) -> float:
        return self._incumbent

    def with_pending(self, subspaces: Sequence[Subspace], x: Sequence[Array]) -> Self:
        if not subspaces:
            return self
        extended = copy.copy(self)
        with torch.no_grad():
            mean, _ = self.posteriors(as_batches(subspaces, x))
            z = torch.cat([self._z, mean])
            extended.condition([*self._subspaces, *subspaces], [*self._x, *x], z)
        return extended
