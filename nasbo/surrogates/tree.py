"""Leaf GPs tied by a linear model of the paths."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.gp.conditioning import MIN_VARIANCE, FitError
from nasbo.gp.features import ParameterFeatures
from nasbo.gp.fit import JITTER, maximise_density
from nasbo.gp.kernels import ARDKernel, KernelName
from nasbo.gp.pairs import PairTerm, grouped_distances
from nasbo.gp.priors import NOISE, Priors, lengthscale_mean
from nasbo.gp.rows import Batches, by_subspace, gathered
from nasbo.gp.tree_evidence import LeafRows, TreeEvidence, TreeRows
from nasbo.space import Space, Subspace
from nasbo.space.vertices import VertexTree
from nasbo.space.walk import Key
from nasbo.surrogates.base import GP

Array = NDArray[np.float64]
FEATURES = ("linear", "fourier")
N_FOURIER = 16
"""Random Fourier features of an inner node."""
Table = dict[Key | int, int]
"""Where the weights of an inner node (by its key) and of a leaf (by its number) start."""


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


class TreeGP(GP):
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
        space: the space of all data.
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
        self._kernel: KernelName = kernel
        self.kernels: dict[int, LeafKernel] = {}
        for subspace in space.subspaces() if space.is_listable else ():
            if columns := self.design.own_columns(subspace):
                own = ParameterFeatures([subspace.free[column].parameter for column in columns])
                ard = ARDKernel.add_to(self.priors, own.owners, -math.log(3.0), kernel)
                self.kernels[subspace.index] = LeafKernel(columns, own, ard)

    def learn(self, subspaces: list[Subspace], x: list[Array], z: Tensor) -> None:
        """Find the hyperparameters by MAP and the posterior of weights and leaves."""
        self._take(subspaces, x, z)
        self.theta = torch.from_numpy(maximise_density(self.evidence(), self.priors))
        self.condition(subspaces, x, z)

    def condition(self, subspaces: list[Subspace], x: list[Array], z: Tensor) -> None:
        self._take(subspaces, x, z)
        with torch.no_grad():
            self._state = self._solve(self.theta)

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

        rows = TreeRows(leaves, features, self.design.variances(self._table).numpy())
        return TreeEvidence(rows, self.priors, self.noise, self._kernel)

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

        Shape (n,) each, differentiable in the shared parameters; those of a leaf do not matter.
        """
        z, extra = self._design_rows(batches)
        root = torch.linalg.solve_triangular(self._state.factor, z.T, upper=False)
        variance = (root * root).sum(0) + (extra * extra).sum(1)
        return z @ self._state.weights, variance.clamp_min(MIN_VARIANCE)

    def joint_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        batches, order = gathered(batches)
        z, extra = self._design_rows(batches)
        parts = z.split([len(x) for _, x in batches])
        leaves = [self._leaf_posterior(*b, p, True) for b, p in zip(batches, parts, strict=True)]
        means, blocks, paths = zip(*leaves, strict=True)
        t = torch.cat(paths)
        root = torch.linalg.solve_triangular(self._state.factor, t.T, upper=False)
        mean = torch.cat(means) + t @ self._state.weights
        covariance = torch.block_diag(*blocks) + extra @ extra.T + root.T @ root
        return mean[order], covariance[order][:, order]

    def best_rows(self, subspace: Subspace, n: int = 3) -> list[Array]:
        """The rows of a leaf with the largest scores, best first."""
        subspaces, x, y = self._data
        rows = by_subspace(subspaces).get(subspace.index, [])
        return [x[at] for at in sorted(rows, key=lambda at: -float(y[at]))[:n]]

    def _take(self, subspaces: list[Subspace], x: list[Array], y: Tensor) -> None:
        self._data = subspaces, x, y
        self._table = self.design.table(subspaces)
        self._rows: dict[int, tuple[Subspace, Tensor, Tensor]] = {}
        for leaf, indices in by_subspace(subspaces).items():
            rows = torch.from_numpy(np.stack([x[at] for at in indices]))
            self._rows[leaf] = subspaces[indices[0]], rows, y[indices]

    def _leaf_rows(self, leaves: Sequence[int]) -> LeafRows:
        """The rows of a leaf, or of several without parameters of their own."""
        y = torch.cat([self._rows[leaf][2] for leaf in leaves]).numpy()
        if leaves[0] not in self.kernels:
            return LeafRows(y, None)
        return LeafRows(y, self.kernels[leaves[0]].pairs(self._rows[leaves[0]][1]))

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
        own = self.kernels[leaf]
        values = own.features(x)
        K = own.kernel.gram(theta, values, values)
        factor = _cholesky(K + noise * torch.eye(len(K), dtype=K.dtype))
        solved = torch.linalg.solve_triangular(factor, torch.cat([z, y[:, None]], 1), upper=False)
        return _Leaf(values, factor, solved[:, :-1], solved[:, -1])

    def _design_rows(self, batches: Batches) -> tuple[Tensor, Tensor]:
        """z of rows for the weights with data, (n, d), and for those without, (n, e)."""
        table = self.design.table([subspace for subspace, _ in batches], self._table)
        z = self.design.rows(self.theta, table, batches)
        d = self.design.width(self._table)
        return z[:, :d], z[:, d:]

    def _leaf_posterior(
        self, subspace: Subspace, x: Tensor, z: Tensor, is_joint: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and variance of g_p, (n,) each, for c = 0, and t_p(x), (n, d) (section 3.2).

        Where ``is_joint``, the covariance, (n, n), instead of the variance.
        """
        zero = x.sum(1) * 0.0  # keeps the way to ``x`` open for autograd
        own, state = self.kernels.get(subspace.index), self._state.leaves.get(subspace.index)
        if own is None:
            return zero, z.new_zeros(len(x), len(x)) if is_joint else zero, z
        values, kernel = own.features(x), own.kernel
        prior = zero + kernel.variance(self.theta)
        if is_joint:
            prior = kernel.gram(self.theta, values, values)
        if state is None or state.values is None or state.factor is None:
            return zero, prior, z
        cross = kernel.gram(self.theta, state.values, values)
        solved = torch.linalg.solve_triangular(state.factor, cross, upper=False)
        explained = solved.T @ solved if is_joint else (solved * solved).sum(0)
        return solved.T @ state.y, prior - explained, z - solved.T @ state.z


class PathDesign:
    """The features z of a path, scaled by the prior sds of their weights.

    An inner node is a vertex that several subspaces pass; where the subspaces are too many to
    list, all vertices count as inner nodes. It has a weight for its 1 and one for each feature of
    its parameters. Each leaf has a weight for its offset.

    Args:
        tree: the vertices of the space.
        features: ``linear`` or ``fourier``.
        priors: where the hyperparameters are added.
    """

    def __init__(self, tree: VertexTree, features: str, priors: Priors) -> None:
        self.tree = tree
        self.is_fourier = features == "fourier"
        self._passed = Counter(
            key
            for subspace in (tree.space.subspaces() if tree.space.is_listable else ())
            for key in tree.path(subspace)
        )
        self._maps = {
            key: ParameterFeatures([slot.parameter for slot in slots])
            for key, slots in tree.slots.items()
        }
        self._constant, self._offset = priors.add(2, -math.log(3.0), 1.0)
        (self._slope,) = priors.add(1, 0.0, 1.5)
        (self._stretch,) = priors.add(1, lengthscale_mean(1), 1.0)
        generator = torch.Generator().manual_seed(0)
        self._waves = {
            key: (
                torch.randn(node.n_features, N_FOURIER, generator=generator, dtype=torch.float64),
                torch.rand(N_FOURIER, generator=generator, dtype=torch.float64) * 2 * math.pi,
            )
            for key, node in self._maps.items()
        }

    def is_shared(self, key: Key) -> bool:
        """Whether several subspaces pass a vertex."""
        return not self.tree.space.is_listable or self._passed[key] > 1

    def own_columns(self, subspace: Subspace) -> list[int]:
        """Columns of ``x`` of the parameters that no other subspace has."""
        path = self.tree.path(subspace)
        return sorted(c for key, cols in path.items() if not self.is_shared(key) for c in cols)

    def shared_columns(self, subspace: Subspace) -> list[int]:
        """The other columns of ``x``."""
        own = set(self.own_columns(subspace))
        return [column for column in range(subspace.n_free) if column not in own]

    def table(self, subspaces: Sequence[Subspace], known: Table | None = None) -> Table:
        """Indices of the weights of all nodes of some paths, behind those known already."""
        table = dict(known or {})
        end = self.width(table)
        for subspace in subspaces:
            nodes: list[Key | int] = [k for k in self.tree.path(subspace) if self.is_shared(k)]
            for node in (*nodes, subspace.index):
                if node not in table:
                    table[node] = end
                    end += self._n_weights(node)
        return table

    def width(self, table: Table) -> int:
        """How many weights a table has."""
        last = max(table, key=lambda node: table[node], default=None)
        return 0 if last is None else table[last] + self._n_weights(last)

    def rows(self, theta: Tensor, table: Table, batches: Batches) -> Tensor:
        """z of rows, times the prior sds of the weights: (n, width), differentiable in ``x``."""
        return self.raw(theta, table, batches) * (0.5 * theta[self.variances(table)]).exp()

    def variances(self, table: Table) -> Tensor:
        """Index of the log variance of each weight among the hyperparameters, (width,)."""
        indices = torch.full((self.width(table),), self._slope, dtype=torch.long)
        for node, start in table.items():
            indices[start] = self._offset if isinstance(node, int) else self._constant
        return indices

    def raw(self, theta: Tensor, table: Table, batches: Batches) -> Tensor:
        """z of rows as it is, (n, width); ``theta`` matters to Fourier features alone."""
        width, blocks = self.width(table), []
        for subspace, x in batches:
            z = x.new_zeros(len(x), width)
            ones = [table[subspace.index]]
            for key, columns in self.tree.path(subspace).items():
                if not self.is_shared(key):
                    continue
                ones.append(table[key])
                if columns:
                    part = self._node(theta, key, x[:, list(columns)])
                    start = table[key] + 1
                    z = z.index_copy(1, torch.arange(start, start + part.shape[1]), part)
            blocks.append(z.index_fill(1, torch.tensor(ones), 1.0))
        return torch.cat(blocks)

    def _node(self, theta: Tensor, key: Key, x: Tensor) -> Tensor:
        values = self._maps[key](x)
        if not self.is_fourier:
            return values
        directions, phases = self._waves[key]
        angles = values @ directions * torch.exp(-theta[self._stretch]) + phases
        return math.sqrt(2.0 / N_FOURIER) * torch.cos(angles)

    def _n_weights(self, node: Key | int) -> int:
        if isinstance(node, int) or node not in self._maps:
            return 1
        return 1 + (N_FOURIER if self.is_fourier else self._maps[node].n_features)


@dataclass(frozen=True)
class LeafKernel:
    """The kernel K_p on the parameters of a leaf; ``columns`` are those of ``x`` it has alone."""

    columns: list[int]
    map: ParameterFeatures
    kernel: ARDKernel

    def features(self, x: Tensor) -> Tensor:
        """Features of the leaf's parameters, (n, n_features), of rows (n, n_free)."""
        return self.map(x[:, self.columns])

    def pairs(self, x: Tensor) -> PairTerm:
        """All pairs of rows, (n, n_free), for the fit."""
        left, right = np.indices((len(x), len(x))).reshape(2, -1)
        values, scales = self.features(x).numpy(), self.kernel.scales.numpy()
        distances, scales = grouped_distances(values, left, right, scales)
        return PairTerm(left * len(x) + right, distances, scales, self.kernel.weight)


def _cholesky(K: Tensor) -> Tensor:
    factor, failed = torch.linalg.cholesky_ex(K)
    if int(failed):
        raise FitError("the matrices of the leaves and of the weights must be positive definite")
    return factor
