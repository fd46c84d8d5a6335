"""Independent GPs, one per subspace."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.gp.conditioning import Conditioned
from nasbo.gp.features import ParameterFeatures
from nasbo.gp.kernels import ARDKernel, KernelName
from nasbo.gp.rows import Batches, by_subspace, gathered
from nasbo.space import Space, Subspace
from nasbo.surrogates.base import GP, KernelGP

Array = NDArray[np.float64]


class SubspaceGP(KernelGP):
    """GP on the parameters of one subspace, with a lengthscale per parameter."""

    def __init__(self, space: Space, subspace: Subspace, kernel: KernelName = "matern") -> None:
        super().__init__(space)
        self.map = ParameterFeatures([one.parameter for one in subspace.free])
        self.kernel = ARDKernel.add_to(self.priors, self.map.owners, 0.0, kernel)
        self.theta = torch.tensor(self.priors.means, dtype=torch.float64)
        nothing = torch.zeros(0, self.map.n_features, dtype=torch.float64)
        self.condition_on(nothing, nothing.sum(1))

    @property
    def seen(self) -> tuple[Tensor, Conditioned]:
        """Features of the training rows, empty at first, and the posterior."""
        return self._seen, self._conditioned

    def features(self, batches: Batches) -> Tensor:
        """Shape (n, n_features)."""
        return torch.cat([self.map(x) for _, x in batches])


Learn = Callable[[SubspaceGP, list[Subspace], list[Array], Tensor], None]


class IndependentGPs(GP):
    """One GP per subspace, each with its own hyperparameters (Bergstra et al. 2011).

    Scores are standardised over all subspaces, so that improvements are comparable. A subspace
    without data has its prior.

    Args:
        space: the space of all data.
        learn: how a subspace's GP is fitted to its rows; MAP if not given.
        kernel: ``matern`` (5/2) or ``se``.
    """

    def __init__(
        self, space: Space, learn: Learn = SubspaceGP.learn, kernel: KernelName = "matern"
    ) -> None:
        self.space = space
        self._learn = learn
        self._kernel: KernelName = kernel
        self._models: dict[int, SubspaceGP] = {}

    def learn(self, subspaces: list[Subspace], x: list[Array], z: Tensor) -> None:
        """Fit each subspace's GP to its own rows."""
        self._models = {}
        self._take(self._learn, subspaces, x, z)

    def condition(self, subspaces: list[Subspace], x: list[Array], z: Tensor) -> None:
        self._models = {index: copy.copy(model) for index, model in self._models.items()}
        self._take(SubspaceGP.condition, subspaces, x, z)

    def _take(self, learn: Learn, subspaces: list[Subspace], x: list[Array], z: Tensor) -> None:
        self._data, repeats = (subspaces, x, z), self.repeats_of(len(z))
        for index, rows in by_subspace(subspaces).items():
            here = [subspaces[at] for at in rows]
            self._models[index] = self.model(here[0])
            self._models[index].repeats = repeats.take(rows)
            learn(self._models[index], here, [x[at] for at in rows], z[rows])

    def model(self, subspace: Subspace) -> SubspaceGP:
        """The GP of a subspace; the prior if it has no rows."""
        model = self._models.get(subspace.index)
        return SubspaceGP(self.space, subspace, self._kernel) if model is None else model

    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        batches, order = gathered(batches)
        parts = (self.model(subspace).posterior(subspace, x) for subspace, x in batches)
        means, variances = zip(*parts, strict=True)
        return torch.cat(means)[order], torch.cat(variances)[order]

    def joint_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        batches, order = gathered(batches)
        parts = (self.model(subspace).joint_posterior([(subspace, x)]) for subspace, x in batches)
        means, blocks = zip(*parts, strict=True)
        return torch.cat(means)[order], torch.block_diag(*blocks)[order][:, order]

    def correlations(self, subspace: Subspace, x: Tensor, others: Batches) -> Tensor | None:
        """Prior correlations, 0 with configs of other subspaces."""
        model = self.model(subspace)
        one = model.map(x)
        parts = [
            model.covariance(one, model.map(rows))[0] / model.variance(one)
            if other.index == subspace.index
            else x.new_zeros(len(rows))
            for other, rows in others
        ]
        return torch.cat(parts)
