"""Leaf GPs tied by a linear model of the paths."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.history.data import Data
from nasbo.space import Space, Subspace
from nasbo.space.vertices import VertexTree
from nasbo.surrogates.base import Batches, FitError, Surrogate, gathered
from nasbo.surrogates.correlations import KernelName
from nasbo.surrogates.exact import MIN_VARIANCE
from nasbo.surrogates.kernel_gp import standard_scores
from nasbo.surrogates.kernels import Priors
from nasbo.surrogates.leaves import LeafKernels, PathDesign
from nasbo.surrogates.marginal import JITTER, NOISE
from nasbo.surrogates.maximum import maximise_density
from nasbo.surrogates.tree_evidence import LeafRows, TreeEvidence, TreeRows

Array = NDArray[np.float64]
FEATURES = ("linear", "fourier")


@dataclass(frozen=True)
class _Leaf:
    """The rows of a leaf: features, factor L of M_p, and L^-1 of Z_p' (n_p, d) and of y_p."""

    values: Tensor | None
    factor: Tensor | None
    z: Tensor
    y: Tensor


@dataclass(frozen=True)
class _State:
    """All leaves, the factor of Lambda_c, and Lambda_c^-1 f_c, for some theta."""

    leaves: dict[int, _Leaf]
    factor: Tensor
    weights: Tensor


class TreeGP(Surrogate):
    """Tree-structured semi-parametric GP of Jenatton et al. (2017), model (1) and section 2.4.

    The score of a config on path p is g_p(x) + z' c. g_p is a GP of leaf p on the parameters that
    exist on that path alone (Matérn-5/2, hyperparameters per leaf); z holds, for each inner node
    of the path, a 1 and the parameters that several paths share (numbers as they are, choices
    one-hot; or random Fourier features of them, section 4.3); c is Gaussian. The posterior and
    the likelihood (eq. 3) take O(d^3 + sum n_p^3) by Cholesky factors of M_p = K_p + noise and of
    Lambda_c; the n x n marginal (eq. 4) is never formed.

    Departures: the offset b_p of a leaf has a Gaussian prior and is integrated out with c (z has a
    1 for the leaf), where the paper leaves open how it is found; a leaf without parameters of its
    own has no g_p, only its offset; priors on all hyperparameters.

    Args:
        space: the space of all observations.
        features: of the shared parameters, ``linear`` or ``fourier``.
        kernel: of the leaves, ``matern`` (5/2, as in the paper) or ``se``.
    """

    def __init__(
        self, space: Space, features: str = "linear", kernel: KernelName = "matern"
    ) -> None:
        self.space = space
        self.priors = Priors()
        (self.noise,) = self.priors.add(1, *NOISE)
        self.design = PathDesign(VertexTree(space), features, self.priors)
        self.kernels = LeafKernels(space, self.design, self.priors, kernel)

    def fit(self, observations: Data) -> None:
        """Find the hyperparameters by MAP and the posterior of weights and leaves."""
        z, self.scale = standard_scores(observations)
        self._take(list(observations.subspaces), list(observations.x), z)
        self.theta = torch.from_numpy(maximise_density(self.evidence(), self.priors))
        with torch.no_grad():
            self._state = self._solve(self.theta)
            mean, _ = self.posteriors([(seen, x) for seen, x, _ in self._rows.values()])
        self._incumbent = float(mean.max())

    def evidence(self) -> TreeEvidence:
        """The density of the hyperparameters (eq. 3, and priors) given the rows taken in."""
        order = sorted(self._rows, key=lambda leaf: leaf in self.kernels)
        n_bare = sum(leaf not in self.kernels for leaf in order)
        leaves = [self._leaf_rows(order[:n_bare])] if n_bare else []
        leaves += [self._leaf_rows([leaf]) for leaf in order[n_bare:]]
        batches = [self._rows[leaf][:2] for leaf in order]
        start = torch.tensor(self.priors.means, dtype=torch.float64)
        fixed = self.design.raw(start, self._table, batches)

        def features(theta: Tensor) -> Tensor:
            if not self.design.is_fourier:
                return fixed
            return self.design.raw(theta, self._table, batches)

        rows = TreeRows(leaves, features, self.design.places(self._table).numpy())
        return TreeEvidence(rows, self.priors, self.noise, self.kernels.name)

    def posteriors(self, batches: Batches) -> tuple[Tensor, Tensor]:
        means, variances = [], []
        batches, order = gathered(batches)
        for subspace, x in batches:
            z, extra = self._design_rows([(subspace, x)])
            mean, variance, t = self._leaf_posterior(subspace, x, z)
            root = torch.linalg.solve_triangular(self._state.factor, t.T, upper=False)
            means.append(mean + t @ self._state.weights)
            variances.append(variance + (root * root).sum(0) + (extra * extra).sum(1))
        return torch.cat(means)[order], torch.cat(variances).clamp_min(MIN_VARIANCE)[order]

    def path_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        """Mean and variance of z' c, the part of the score that the path decides (eq. 6).

        Args:
            batches: the rows; columns of a leaf's own parameters do not matter.

        Returns:
            Shape (n,) each, differentiable in the shared parameters.
        """
        z, extra = self._design_rows(batches)
        root = torch.linalg.solve_triangular(self._state.factor, z.T, upper=False)
        variance = (root * root).sum(0) + (extra * extra).sum(1)
        return z @ self._state.weights, variance.clamp_min(MIN_VARIANCE)

    def joint_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        z, extra = self._design_rows(batches)
        owner = np.repeat([s.index for s, _ in batches], [len(x) for _, x in batches])
        rows = [row for _, x in batches for row in x]
        subspaces = {subspace.index: subspace for subspace, _ in batches}
        mean, t = z.new_zeros(len(z)), z.clone()
        covariance = extra @ extra.T
        for leaf, subspace in subspaces.items():
            places = torch.from_numpy(np.flatnonzero(owner == leaf))
            x = torch.stack([rows[at] for at in places])
            mean[places], block, t[places] = self._leaf_joint(subspace, x, z[places])
            covariance[places[:, None], places] += block
        root = torch.linalg.solve_triangular(self._state.factor, t.T, upper=False)
        return mean + t @ self._state.weights, covariance + root.T @ root

    def best_rows(self, subspace: Subspace, n: int = 3) -> list[Array]:
        """The rows of a leaf with the largest scores, best first."""
        places = [at for at, seen in enumerate(self._subspaces) if seen.index == subspace.index]
        order = sorted(places, key=lambda at: -float(self._y[at]))
        return [self._x[at] for at in order[:n]]

    def incumbent(self) -> float:
        return self._incumbent

    def with_pending(self, subspaces: Sequence[Subspace], x: Sequence[Array]) -> TreeGP:
        if not subspaces:
            return self
        extended = copy.copy(self)
        with torch.no_grad():
            rows = [(s, torch.from_numpy(row[None])) for s, row in zip(subspaces, x, strict=True)]
            y = torch.cat([self._y, self.posteriors(rows)[0]])
            extended._take([*self._subspaces, *subspaces], [*self._x, *x], y)
            extended._state = extended._solve(self.theta)
        return extended

    def _take(self, subspaces: list[Subspace], x: list[Array], y: Tensor) -> None:
        self._subspaces, self._x, self._y = subspaces, x, y
        self._table = self.design.table(subspaces)
        self._rows: dict[int, tuple[Subspace, Tensor, Tensor]] = {}
        for leaf in dict.fromkeys(subspace.index for subspace in subspaces):
            places = [at for at, subspace in enumerate(subspaces) if subspace.index == leaf]
            rows = torch.from_numpy(np.stack([x[at] for at in places]))
            self._rows[leaf] = subspaces[places[0]], rows, y[places]

    def _leaf_rows(self, leaves: Sequence[int]) -> LeafRows:
        """The rows of a leaf, or of several without parameters of their own."""
        y = torch.cat([self._rows[leaf][2] for leaf in leaves]).numpy()
        if leaves[0] not in self.kernels:
            return LeafRows(y, None)
        values = self.kernels.features(leaves[0], self._rows[leaves[0]][1])
        return LeafRows(y, self.kernels.pairs(leaves[0], values))

    def _solve(self, theta: Tensor) -> _State:
        """Posterior of the weights (section 2.2)."""
        leaves = {leaf: self._whiten(theta, leaf) for leaf in self._rows}
        z = torch.cat([leaf.z for leaf in leaves.values()])
        y = torch.cat([leaf.y for leaf in leaves.values()])
        factor = _cholesky(torch.eye(z.shape[1], dtype=z.dtype) + z.T @ z)
        weights = torch.cholesky_solve((z.T @ y)[:, None], factor)[:, 0]
        return _State(leaves, factor, weights)

    def _whiten(self, theta: Tensor, leaf: int) -> _Leaf:
        """A leaf's rows times the inverse factor of M_p."""
        noise = theta[self.noise].exp() + JITTER
        subspace, x, y = self._rows[leaf]
        z = self.design.rows(theta, self._table, [(subspace, x)])
        if leaf not in self.kernels:
            return _Leaf(None, None, z / noise.sqrt(), y / noise.sqrt())
        values = self.kernels.features(leaf, x)
        K = self.kernels.gram(theta, leaf, values, values)
        factor = _cholesky(K + noise * torch.eye(len(K), dtype=K.dtype))
        solved = torch.linalg.solve_triangular(factor, torch.cat([z, y[:, None]], 1), upper=False)
        return _Leaf(values, factor, solved[:, :-1], solved[:, -1])

    def _design_rows(self, batches: Batches) -> tuple[Tensor, Tensor]:
        """z of rows for the weights with observations, (n, d), and for those without, (n, e)."""
        table = self.design.table([subspace for subspace, _ in batches], self._table)
        z = self.design.rows(self.theta, table, batches)
        d = self.design.width(self._table)
        return z[:, :d], z[:, d:]

    def _leaf_posterior(
        self, subspace: Subspace, x: Tensor, z: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and variance of g_p, (n,) each, for c = 0, and t_p(x), (n, d) (section 3.2)."""
        leaf = subspace.index
        zero = x.sum(1) * 0.0  # keeps the way to ``x`` open for autograd
        if leaf not in self.kernels:
            return zero, zero, z
        prior = self.kernels.variance(self.theta, leaf).expand(len(x))
        state = self._state.leaves.get(leaf)
        if state is None:
            return zero, zero + prior, z
        solved = self._solve_cross(leaf, x, state)
        return solved.T @ state.y, prior - (solved * solved).sum(0), z - solved.T @ state.z

    def _leaf_joint(
        self, subspace: Subspace, x: Tensor, z: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The same with the covariance of g_p, (n, n)."""
        mean, _, t = self._leaf_posterior(subspace, x, z)
        leaf = subspace.index
        if leaf not in self.kernels:
            return mean, z.new_zeros(len(x), len(x)), t
        values = self.kernels.features(leaf, x)
        K = self.kernels.gram(self.theta, leaf, values, values)
        if (state := self._state.leaves.get(leaf)) is not None:
            solved = self._solve_cross(leaf, x, state)
            K = K - solved.T @ solved
        return mean, K, t

    def _solve_cross(self, leaf: int, x: Tensor, state: _Leaf) -> Tensor:
        """L_p^-1 k_p(x), shape (n_p, n)."""
        assert state.values is not None
        assert state.factor is not None
        values = self.kernels.features(leaf, x)
        cross = self.kernels.gram(self.theta, leaf, state.values, values)
        return torch.linalg.solve_triangular(state.factor, cross, upper=False)


def _cholesky(K: Tensor) -> Tensor:
    factor, failed = torch.linalg.cholesky_ex(K)
    if int(failed):
        raise FitError("the matrices of the leaves and of the weights must be positive definite")
    return factor
