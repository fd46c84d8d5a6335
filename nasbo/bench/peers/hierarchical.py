"""BoTorch's hierarchical GP with log-EI, as a method of nasbo."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.bench.peers.blocks import Blocks, Hyperparameters
from nasbo.bench.peers.columns import TreeColumns
from nasbo.methods.base import Task
from nasbo.methods.modelled import SurrogateMethod
from nasbo.methods.options import check_choice
from nasbo.space import Space, Subspace
from nasbo.surrogates.base import Batches, ExactGP, FitError, as_batches

Array = NDArray[np.float64]

FITS = ("fast", "botorch")
JITTER = 1e-8


class HierarchicalGP(SurrogateMethod):
    """BoTorch's ``HierarchicalConditionalKernelGP`` with log-EI maximised in each subspace.

    All settings are the class's defaults. The encoding, which it leaves to its user, has numbers in
    the unit cube, non-structural choices one-hot, and the length of a repeated list as a chain of
    flags, because a column can only depend on one value of its parent.

    Args:
        space: what to search.
        seed: of all random numbers.
        fit: ``fast`` maximises the density of BoTorch's hyperparameters with code that evaluates
            all blocks at once; ``botorch`` uses BoTorch's own fit, at many times the cost.
        iterations: maximum number of L-BFGS iterations per fit.
    """

    def __init__(
        self, space: Space, seed: int = 0, *, fit: str = "fast", iterations: int = 200
    ) -> None:
        super().__init__(space, seed)
        check_choice("fit", fit, FITS)
        self.fit, self.iterations = fit, iterations
        self._columns = TreeColumns(space)
        self._blocks = Blocks(self._columns.n_columns, self._columns.dependencies)

    def make_surrogate(self, task: Task) -> HierarchicalSurrogate:
        fit = self._blocks.fit if self.fit == "fast" else BotorchFit(self._columns, task.torch_seed)
        return HierarchicalSurrogate(self._columns, self._blocks, fit, self.iterations)


class HierarchicalSurrogate(ExactGP):
    """BoTorch's model, conditioned like the other exact GPs of nasbo.

    Args:
        columns: encodes configs as rows.
        blocks: covariances of rows.
        fit: function from rows, scores and a number of iterations to hyperparameters.
        iterations: maximum number of L-BFGS iterations.
    """

    def __init__(self, columns: TreeColumns, blocks: Blocks, fit: Any, iterations: int) -> None:
        self._columns, self._blocks = columns, blocks
        self._fit, self._iterations = fit, iterations

    def learn(self, subspaces: list[Subspace], x: list[Array], z: Tensor) -> None:
        rows = self.features(as_batches(subspaces, x))
        self.theta: Hyperparameters = self._fit(rows, z, self._iterations)
        self.condition_on(rows, z - self.theta.mean)

    def features(self, batches: Batches) -> Tensor:
        return self._columns.rows(batches)

    def covariance(self, left: Tensor, right: Tensor) -> Tensor:
        return self._blocks.gram(self.theta, left, right)

    def variance(self, rows: Tensor) -> Tensor:
        return self._blocks.diagonal(self.theta, rows)

    def noise_variance(self) -> Tensor:
        return self.theta.noise + JITTER

    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        mean, variance = super().posteriors(batches)
        return mean + self.theta.mean, variance

    def joint_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        mean, K = super().joint_posterior(batches)
        return mean + self.theta.mean, K


class BotorchFit:
    """Fits the hyperparameters with BoTorch's own class and fitting code.

    Args:
        columns: of the rows.
        seed: of the fit's restarts.
    """

    def __init__(self, columns: TreeColumns, seed: int) -> None:
        self._columns, self._seed = columns, seed

    def __call__(self, rows: Tensor, z: Tensor, iterations: int) -> Hyperparameters:
        from botorch.exceptions import ModelFittingError
        from botorch.fit import fit_gpytorch_mll
        from gpytorch.mlls import ExactMarginalLogLikelihood

        model = botorch_model(self._columns, rows, z)
        mll = ExactMarginalLogLikelihood(model.likelihood, model)
        with torch.random.fork_rng():
            torch.manual_seed(self._seed)
            try:
                fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": iterations}})
            except ModelFittingError as error:
                raise FitError(f"BoTorch could not fit its model: {error}") from error
        return read_hyperparameters(model)


def botorch_model(columns: TreeColumns, rows: Tensor, z: Tensor) -> Any:
    """BoTorch's model for rows, shape (n, columns), and standardised scores, shape (n,)."""
    from botorch.models.hierarchical.conditional_kernel_gp import HierarchicalConditionalKernelGP

    return HierarchicalConditionalKernelGP(
        rows, z[:, None], columns.dependencies, outcome_transform=None
    )


def read_hyperparameters(model: Any) -> Hyperparameters:
    """The fitted hyperparameters of BoTorch's model."""
    kernel = model.covar_module
    lengthscales = torch.full((sum(map(len, kernel.partition)),), math.nan, dtype=torch.float64)
    for columns, part in zip(kernel.partition, kernel.kernels, strict=True):
        lengthscales[columns] = part.base_kernel.lengthscale.detach().double().view(-1)
    bases = [part.base_kernel for part in kernel.kernels]
    taus = [base.raw_tau_constraint.transform(base.raw_tau).detach().view(()) for base in bases]
    return Hyperparameters(
        lengthscales,
        torch.stack(taus).double(),
        torch.stack([part.outputscale.detach().view(()) for part in kernel.kernels]).double(),
        model.likelihood.noise.detach().double().view(()),
        model.mean_module.constant.detach().double().view(()),
    )
