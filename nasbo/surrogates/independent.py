"""One GP per subspace; they share nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.history.data import Data
from nasbo.space import Space, Subspace
from nasbo.surrogates.base import Batches, Surrogate, batches_of, gathered
from nasbo.surrogates.correlations import CORRELATIONS, KernelName
from nasbo.surrogates.exact import Conditioned
from nasbo.surrogates.kernel_gp import KernelGP, standard_scores
from nasbo.surrogates.kernels import squared_distances
from nasbo.surrogates.slots import SlotFeatures

Array = NDArray[np.float64]


class SubspaceGP(KernelGP):
    """A GP on the parameters of one subspace, with a lengthscale for each of them."""

    def __init__(self, space: Space, subspace: Subspace, kernel: KernelName = "matern") -> None:
        super().__init__(space)
        self.subspace = subspace
        self._correlation = CORRELATIONS[kernel]
        self.slots = SlotFeatures([slot.parameter for slot in subspace.free])
        self.scales = self.slots.add_scales(self.priors)
        (self.weight,) = self.priors.add(1, 0.0, 1.0)
        self.theta = torch.tensor(self.priors.means, dtype=torch.float64)

    @property
    def data(self) -> tuple[Tensor, Conditioned] | None:
        """Features of the rows that were learned from, and the factors; ``None`` before."""
        return (self._seen, self._conditioned) if hasattr(self, "_seen") else None

    def features(self, batches: Batches) -> Tensor:
        """Shape (n, n_features)."""
        return torch.cat([self.slots(x) for _, x in batches])

    def gram(self, theta: Tensor, left: Tensor, right: Tensor) -> Tensor:
        scale = torch.exp(-theta[self.scales])
        distances = squared_distances(left * scale, right * scale)
        return theta[self.weight].exp() * self._correlation(distances)

    def diagonal(self, theta: Tensor, rows: Tensor) -> Tensor:
        return theta[self.weight].exp().expand(len(rows))


Learn = Callable[[SubspaceGP, list[Subspace], list[Array], Tensor], None]


class IndependentGPs(Surrogate):
    """A GP for each subspace, with hyperparameters of its own (Bergstra et al. 2011).

    Scores are standardised over all subspaces, so that improvements can be compared. A subspace
    without observations has the prior.

    Args:
        space: the space of all observations.
        learn: how a subspace's GP learns from its rows; MAP if not given.
        kernel: ``matern`` (5/2) or ``se``.
    """

    def __init__(
        self, space: Space, learn: Learn = SubspaceGP.learn, kernel: KernelName = "matern"
    ) -> None:
        self.space = space
        self._learn = learn
        self._kernel: KernelName = kernel
        self._models: dict[int, SubspaceGP] = {}

    def fit(self, observations: Data) -> None:
        """Let each subspace's GP learn from its own rows."""
        z, self.scale = standard_scores(observations)
        self._models = {}
        for rows in _by_subspace(observations.subspaces).values():
            subspaces = [observations.subspaces[at] for at in rows]
            model = self._fresh(subspaces[0])
            self._learn(model, subspaces, [observations.x[at] for at in rows], z[rows])
            self._models[subspaces[0].index] = model
        with torch.no_grad():
            mean, _ = self.posteriors(batches_of(observations))
        self._incumbent = float(mean.max())

    def model(self, subspace: Subspace) -> SubspaceGP:
        """The GP of a subspace; one that has learned nothing where there were no rows."""
        model = self._models.get(subspace.index)
        return self._fresh(subspace) if model is None else model

    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        batches, order = gathered(batches)
        parts = [self._posterior(subspace, x) for subspace, x in batches]
        means, variances = zip(*parts, strict=True)
        return torch.cat(means)[order], torch.cat(variances)[order]

    def joint_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        owner = [subspace for subspace, x in batches for _ in range(len(x))]
        rows = [row for _, x in batches for row in x]
        mean = torch.zeros(len(owner), dtype=torch.float64)
        covariance = torch.zeros(len(owner), len(owner), dtype=torch.float64)
        for places in _by_subspace(owner).values():
            subspace = owner[places[0]]
            part = self._joint(subspace, torch.stack([rows[at] for at in places]))
            mean[places] = part[0]
            covariance[torch.tensor(places)[:, None], torch.tensor(places)] = part[1]
        return mean, covariance

    def incumbent(self) -> float:
        return self._incumbent

    def with_pending(self, subspaces: Sequence[Subspace], x: Sequence[Array]) -> IndependentGPs:
        if not subspaces:
            return self
        extended = copy.copy(self)
        extended._models = dict(self._models)
        for index, places in _by_subspace(subspaces).items():
            here = [subspaces[at] for at in places]
            rows = [x[at] for at in places]
            if (model := self._models.get(index)) is not None:
                extended._models[index] = model.with_pending(here, rows)
                continue
            fresh = self._fresh(here[0])
            fresh.condition(here, rows, torch.zeros(len(rows), dtype=torch.float64))
            extended._models[index] = fresh
        return extended

    def _fresh(self, subspace: Subspace) -> SubspaceGP:
        return SubspaceGP(self.space, subspace, self._kernel)

    def _posterior(self, subspace: Subspace, x: Tensor) -> tuple[Tensor, Tensor]:
        if (model := self._models.get(subspace.index)) is not None:
            return model.posteriors([(subspace, x)])
        prior = self._fresh(subspace)
        zero = x.sum(1) * 0.0  # keeps the way to ``x`` open for autograd
        return zero, zero + prior.diagonal(prior.theta, x)

    def _joint(self, subspace: Subspace, x: Tensor) -> tuple[Tensor, Tensor]:
        batches = [(subspace, x)]
        if (model := self._models.get(subspace.index)) is not None:
            return model.joint_posterior(batches)
        prior = self._fresh(subspace)
        rows = prior.features(batches)
        return x.new_zeros(len(x)), prior.gram(prior.theta, rows, rows)


def _by_subspace(subspaces: Sequence[Subspace]) -> dict[int, list[int]]:
    """Places of the rows of each subspace, by its number, in order."""
    places: dict[int, list[int]] = {}
    for at, subspace in enumerate(subspaces):
        places.setdefault(subspace.index, []).append(at)
    return places
