"""Kernel of BoTorch's hierarchical GP, computed for all blocks at once.

Kernel and hyperparameter priors are those of BoTorch's ``HierarchicalConditionalKernelGP`` with its
defaults (a test compares them). BoTorch evaluates the blocks of a tree one by one, as lazy
matrices, which takes 20 times as long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from nasbo.bench.peers.columns import Dependencies
from nasbo.errors import NasboError
from nasbo.gp.conditioning import FitError
from nasbo.gp.kernels import matern, squared_distances

SAME = 1e-6
"""Smallest difference between levels of structural parameters."""
TAU_SCALE, RATE_SCALE = 0.1, 1.0
"""Scales of the half-Cauchy priors of tau and of tau / lengthscale^2 (SAAS)."""
NOISE_PRIOR = (-4.0, 1.0)
"""Prior mean and sd of the log noise."""
LENGTHS, TAUS, WEIGHTS, NOISES = (1e-2, 1e4), (1e-3, 10.0), (1e-2, 1e4), (1e-4, math.inf)
START_LENGTH, START_TAU, START_WEIGHT, START_NOISE = 1.0, 0.1, 10.0, math.exp(-5.0)


@dataclass(frozen=True)
class Hyperparameters:
    """Hyperparameters of the model.

    Attributes:
        lengthscales: of the columns, in their order, shape (columns,).
        taus: global shrinkages of the blocks, shape (blocks,).
        weights: variances of the blocks, shape (blocks,).
        noise: variance, shape ().
        mean: constant, shape ().
    """

    lengthscales: Tensor
    taus: Tensor
    weights: Tensor
    noise: Tensor
    mean: Tensor


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows in which a block exists, block by block; in a tree
    these are few of all pairs.

    Attributes:
        n: number of rows.
        block: index of each pair's block, shape (pairs,).
        place: flat index in the matrix of all pairs of rows, lower triangle, shape (pairs,).
        share: 1, or 1/2 on the diagonal, shape (pairs,).
        squares: squared differences in the block's columns, shape (pairs, longest).
    """

    n: int
    block: Tensor
    place: Tensor
    share: Tensor
    squares: Tensor


class Blocks:
    """Sets of columns that exist together, found by BoTorch.

    Args:
        n_columns: number of columns of the rows.
        dependencies: parent's column -> value -> columns that exist under it.
    """

    def __init__(self, n_columns: int, dependencies: Dependencies) -> None:
        partition, paths = _find_blocks(n_columns, dependencies)
        self.partition: list[list[int]] = partition
        self.n_columns, self.n_blocks = n_columns, len(partition)
        self._columns = _padded(partition, n_columns).long()
        self._above = _padded([[at for at, _ in path] for path in paths], n_columns).long()
        self._wanted = _padded([[value for _, value in path] for path in paths], 0.0).double()
        owners = {column: block for block, columns in enumerate(partition) for column in columns}
        self._owner = torch.tensor([owners[column] for column in range(n_columns)])

    def gram(self, theta: Hyperparameters, left: Tensor, right: Tensor) -> Tensor:
        """Covariances, shape (n, m), of rows of shape (n, columns) and (m, columns)."""
        scaled = (_with_zero(x / theta.lengthscales) for x in (left, right))
        a, b = (x[:, self._columns].transpose(0, 1) for x in scaled)
        grams = matern(squared_distances(a, b).clamp_min(0.0))
        exists = self.exists(left), self.exists(right)
        return torch.einsum("b,bn,bm,bnm->nm", theta.weights, *exists, grams)

    def diagonal(self, theta: Hyperparameters, rows: Tensor) -> Tensor:
        """Variances, shape (n,)."""
        return theta.weights @ self.exists(rows)

    def exists(self, rows: Tensor) -> Tensor:
        """1 where a block exists, shape (blocks, n); padding conditions always hold."""
        gaps = _with_zero(rows.detach())[:, self._above] - self._wanted
        return (gaps.abs() < SAME).all(-1).to(rows.dtype).T

    def pairs(self, rows: Tensor) -> Pairs:
        """The parts of the covariances of rows, shape (n, columns), with each other."""
        n, padded, found = len(rows), _with_zero(rows), []
        for block, exists in enumerate(self.exists(rows).bool()):
            here = exists.nonzero().flatten()
            i, j = (here[at] for at in torch.tril_indices(len(here), len(here)))
            columns = self._columns[block]
            squares = (padded[i][:, columns] - padded[j][:, columns]) ** 2
            share = torch.where(i == j, 0.5, 1.0).to(rows.dtype)
            found.append((torch.full_like(i, block), i * n + j, share, squares))
        return Pairs(n, *(torch.cat(parts) for parts in zip(*found, strict=True)))

    def gram_of(self, theta: Hyperparameters, pairs: Pairs) -> Tensor:
        """``gram`` of rows with themselves, shape (n, n), at a fraction of the cost."""
        steep = torch.cat([theta.lengthscales**-2, theta.lengthscales.new_zeros(1)])[self._columns]
        squared = (pairs.squares * steep[pairs.block]).sum(-1)
        values = theta.weights[pairs.block] * pairs.share * matern(squared)
        lower = values.new_zeros(pairs.n**2).index_add(0, pairs.place, values)
        half = lower.view(pairs.n, pairs.n)
        return half + half.T

    def log_density(self, theta: Hyperparameters, pairs: Pairs, z: Tensor) -> Tensor:
        """Log marginal likelihood of scores, shape (n,), plus the log priors, shape ()."""
        noise = theta.noise * torch.eye(len(z), dtype=z.dtype)
        factor, failed = torch.linalg.cholesky_ex(self.gram_of(theta, pairs) + noise)
        if int(failed):
            return z.new_tensor(-math.inf)
        white = torch.linalg.solve_triangular(factor, (z - theta.mean)[:, None], upper=False)
        likelihood = -0.5 * (white**2).sum() - factor.diagonal().log().sum()
        likelihood = likelihood - 0.5 * len(z) * math.log(2.0 * math.pi)
        rates = theta.taus[self._owner] / theta.lengthscales**2
        mean, sd = NOISE_PRIOR
        log_noise = theta.noise.log()
        normal = -0.5 * ((log_noise - mean) / sd) ** 2 - log_noise
        normal = normal - math.log(sd) - 0.5 * math.log(2.0 * math.pi)
        taus = _half_cauchy(theta.taus, TAU_SCALE).sum()
        density: Tensor = likelihood + taus + _half_cauchy(rates, RATE_SCALE).sum() + normal
        return density

    def fit(self, rows: Tensor, z: Tensor, iterations: int) -> Hyperparameters:
        """MAP hyperparameters by L-BFGS-B, from BoTorch's starting point.

        Raises:
            FitError: the density is not finite at the start.
        """
        pairs = self.pairs(rows)

        def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            free = torch.from_numpy(flat).requires_grad_()
            density = self.log_density(self.unpack(free), pairs, z) / len(z)
            if not math.isfinite(float(density.detach())):
                return 1e10, np.zeros_like(flat)
            (gradient,) = torch.autograd.grad(-density, free)
            return -float(density.detach()), gradient.numpy()

        start, bounds = self._start()
        if loss(start)[0] >= 1e10:
            raise FitError("the density of the hyperparameters must be finite at the start")
        options = {"maxiter": iterations, "maxfun": 2 * iterations}
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        return self.unpack(torch.from_numpy(found.x))

    def unpack(self, flat: Tensor) -> Hyperparameters:
        """Hyperparameters from one vector of logarithms, except for the mean, which comes last."""
        sizes = [self.n_columns, self.n_blocks, self.n_blocks, 1, 1]
        lengthscales, taus, weights, noise, mean = torch.split(flat, sizes)
        return Hyperparameters(
            lengthscales.exp(), taus.exp(), weights.exp(), noise.exp()[0], mean[0]
        )

    def _start(self) -> tuple[NDArray[np.float64], list[tuple[float, float]]]:
        parts = [
            (self.n_columns, START_LENGTH, LENGTHS),
            (self.n_blocks, START_TAU, TAUS),
            (self.n_blocks, START_WEIGHT, WEIGHTS),
            (1, START_NOISE, NOISES),
        ]
        start = [math.log(value) for n, value, _ in parts for _ in range(n)]
        bounds = [(math.log(a), math.log(b)) for n, _, (a, b) in parts for _ in range(n)]
        return np.array([*start, 0.0]), [*bounds, (-math.inf, math.inf)]


def _find_blocks(
    n_columns: int, dependencies: Dependencies
) -> tuple[list[list[int]], list[list[tuple[int, float]]]]:
    try:
        from botorch.models.hierarchical.utils import get_blocks_with_paths
    except ImportError as error:
        hint = "pip install 'botorch>=0.18'"
        rule = "method 'hierarchical' needs the package 'botorch' from version 0.18 on"
        raise NasboError(f"{rule}: {hint}") from error
    partition, paths = get_blocks_with_paths(n_columns, dependencies)
    return partition, paths


def _half_cauchy(x: Tensor, scale: float) -> Tensor:
    return math.log(2.0 / (math.pi * scale)) - torch.log1p((x / scale) ** 2)


def _padded(lists: Sequence[Sequence[float]], fill: float) -> Tensor:
    """Lists of unequal lengths padded to one tensor, shape (lists, longest)."""
    longest = max(map(len, lists))
    return torch.tensor([[*one, *[fill] * (longest - len(one))] for one in lists])


def _with_zero(rows: Tensor) -> Tensor:
    """Rows, shape (n, d), with a zero column at the end for the padding."""
    return torch.cat([rows, rows.new_zeros(len(rows), 1)], 1)
