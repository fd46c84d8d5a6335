"""History comes in; the best configs by log-EI under BoTorch's hierarchical GP go out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.bench.peers.columns import TreeColumns
from nasbo.errors import NasboError
from nasbo.methods.base import Task
from nasbo.methods.modelled import SurrogateMethod
from nasbo.methods.options import check_choice
from nasbo.space import Space, Subspace
from nasbo.surrogates.base import Batches, FitError, Observations, Surrogate, as_batches
from nasbo.surrogates.exact import Conditioned
from nasbo.surrogates.kernel_gp import standard_scores

Array = NDArray[np.float64]

PRIORS = ("saas", "log-normal")
JITTER = 1e-8


class HierarchicalGP(SurrogateMethod):
    """BoTorch's ``HierarchicalConditionalKernelGP`` with log-EI maximised in each subspace.

    Everything is the class's default but for the encoding, which it leaves to its user: numbers in
    the unit cube, choices that decide nothing one-hot, and the count of a repeated list as a chain
    of flags, because a column may stand under one value of its father only.

    Args:
        space: what to search.
        seed: of all random numbers.
        prior: of the lengthscales, ``saas`` (the class's default) or ``log-normal``.
        iterations: of L-BFGS per fit, at most.
    """

    def __init__(
        self, space: Space, seed: int = 0, *, prior: str = "saas", iterations: int = 100
    ) -> None:
        super().__init__(space, seed)
        check_choice("prior", prior, PRIORS)
        self.prior, self.iterations = prior, iterations
        self._model_class = _find_class()
        self._columns = TreeColumns(space)

    def make_surrogate(self, task: Task) -> HierarchicalSurrogate:
        make = partial(self._model_class, use_saas_prior=self.prior == "saas")
        return HierarchicalSurrogate(self._columns, make, self.iterations, task.torch_seed)


class HierarchicalSurrogate(Surrogate):
    """The model of BoTorch, fitted by BoTorch, conditioned as all exact GPs here are.

    Args:
        columns: configs to rows.
        make_model: ``HierarchicalConditionalKernelGP`` with its options.
        iterations: of L-BFGS, at most.
        seed: of the fit's restarts.
    """

    def __init__(
        self, columns: TreeColumns, make_model: Callable[..., Any], iterations: int, seed: int
    ) -> None:
        self._columns, self._make_model = columns, make_model
        self._iterations, self._seed = iterations, seed

    def fit(self, observations: Observations) -> None:
        z, self.scale = standard_scores(observations)
        rows = self._columns.rows(observations.batches)
        model = self._fitted(rows, z)
        self._kernel, self._mean = model.covar_module, model.mean_module.constant.detach()
        self._noise = float(model.likelihood.noise.detach().squeeze()) + JITTER
        with torch.no_grad():
            noisy = self._gram(rows, rows) + self._noise * torch.eye(len(rows), dtype=rows.dtype)
            self._seen, self._conditioned = rows, Conditioned.on(noisy, z - self._mean)
            mean, _ = self.posteriors(observations.batches)
        self._incumbent = float(mean.max())

    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        rows = self._columns.rows(batches)
        diagonal = self._kernel(rows, rows, diag=True)
        mean, variance = self._conditioned.marginals(self._gram(rows, self._seen), diagonal)
        return mean + self._mean, variance

    def joint_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        rows = self._columns.rows(batches)
        mean, K = self._conditioned.joint(self._gram(rows, self._seen), self._gram(rows, rows))
        return mean + self._mean, K

    def incumbent(self) -> float:
        return self._incumbent

    def with_pending(self, subspaces: Sequence[Subspace], x: Sequence[Array]) -> Self:
        if not subspaces:
            return self
        extended = copy.copy(self)
        rows = self._columns.rows(as_batches(subspaces, x))
        with torch.no_grad():
            K = self._gram(rows, rows) + self._noise * torch.eye(len(rows), dtype=rows.dtype)
            cross = self._gram(rows, self._seen)
            extended._conditioned = self._conditioned.extended(cross, K)
        extended._seen = torch.cat([self._seen, rows])
        return extended

    def _gram(self, left: Tensor, right: Tensor) -> Tensor:
        gram: Tensor = self._kernel(left, right).to_dense()
        return gram

    def _fitted(self, rows: Tensor, z: Tensor) -> Any:
        from botorch.exceptions import ModelFittingError
        from botorch.fit import fit_gpytorch_mll
        from gpytorch.mlls import ExactMarginalLogLikelihood

        dependencies = self._columns.dependencies
        model = self._make_model(rows, z[:, None], dependencies, outcome_transform=None)
        limit = {"options": {"maxiter": self._iterations}}
        with torch.random.fork_rng():
            torch.manual_seed(self._seed)
            try:
                mll = ExactMarginalLogLikelihood(model.likelihood, model)
                fit_gpytorch_mll(mll, optimizer_kwargs=limit)
            except ModelFittingError as error:
                raise FitError(f"BoTorch could not fit its model: {error}") from error
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        return model.eval()


def _find_class() -> Any:
    try:
        from botorch.models.hierarchical.conditional_kernel_gp import (
            HierarchicalConditionalKernelGP,
        )
    except ImportError as error:
        hint = "pip install 'botorch>=0.18'"
        rule = "method 'hierarchical' needs the package 'botorch' from version 0.18 on"
        raise NasboError(f"{rule}: {hint}") from error
    return HierarchicalConditionalKernelGP
