"""Tree-structured GP: one GP per leaf, coupled by a linear model of the paths."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.gp.features import FeatureMap, ParameterFeatures
from nasbo.gp.kernels import CORRELATIONS, KernelName, squared_distances
from nasbo.gp.priors import lengthscale_mean
from nasbo.gp.rows import Batches
from nasbo.space import Space, Subspace
from nasbo.space.walk import ROOT, Key, child_keys
from nasbo.surrogates.base import GP, KernelGP

Array = NDArray[np.float64]
T = TypeVar("T")
BASES = ("linear", "fourier")
N_FOURIER = 16
"""Number of random Fourier features of an inner node."""


class TreeRows(NamedTuple):
    """Features for the kernel; 0 where a row does not have the parameter.

    Attributes:
        shared: features of the inner nodes' parameters, shape (n, n_shared).
        own: features of the leaves' parameters, shape (n, n_own).
        passed: 1 for the inner nodes on the path, shape (n, n_inner).
        leaf: index of the leaf, shape (n,).
        weight: index of the log variance of the leaf's kernel, -1 if it has none, shape (n,).
    """

    shared: Tensor
    own: Tensor
    passed: Tensor
    leaf: Tensor
    weight: Tensor


class TreeGP(KernelGP):
    """Tree-structured semi-parametric GP of Jenatton et al. (2017), model (1) and section 2.4.

    The score of a config on path p is g_p(x) + z' c. g_p is a GP of leaf p on the parameters that
    exist on that path alone (Matérn-5/2, hyperparameters per leaf); z holds, for each inner node
    of the path, a 1 and the parameters that several paths share (numbers as they are, choices
    one-hot; or random Fourier features of them, section 4.3); c is Gaussian. The kernel is that
    of the marginal (eq. 4).

    Departures: the n x n marginal is formed, where the paper's algebra (section 2.3) takes O(d^3 +
        sum n_p^3): n is a few hundred at most. The offset b_p of a leaf has a Gaussian prior and is
        integrated out with c (z has a 1 for the leaf), since the paper leaves open how it is found.
        A leaf without parameters of its own has no g_p, only its offset. All hyperparameters have
        priors.

    Args:
        space: the space of all data.
        features: of the shared parameters, ``linear`` or ``fourier``.
        kernel: of the leaves, ``matern`` (5/2, as in the paper) or ``se``.
    """

    def __init__(
        self, space: Space, features: str = "linear", kernel: KernelName = "matern"
    ) -> None:
        super().__init__(space)
        self.design = PathDesign(space)
        self._constant, self._offset = self.priors.add(2, -math.log(3.0), 1.0)
        (self._slope,) = self.priors.add(1, 0.0, 1.5)
        (self._stretch,) = self.priors.add(1, lengthscale_mean(1), 1.0)
        self._waves = self.design.waves() if features == "fourier" else None
        self._correlation = CORRELATIONS[kernel]
        self._weights: dict[int, int] = {}
        scales = [0] * self.design.n_parameters
        for subspace in space.subspaces() if space.is_listable else ():
            if columns := self.design.own_columns(subspace):
                lengthscales = self.priors.add_lengthscales(len(columns))
                (self._weights[subspace.index],) = self.priors.add(1, -math.log(3.0), 1.0)
                numbers = self.design.numbers(subspace)
                for column, scale in zip(columns, lengthscales, strict=True):
                    scales[numbers[column]] = scale
        self._scales = torch.tensor(self.design.per_feature(scales)).long()[self.design.own]
        self._leaves: dict[int, int] = {}

    def features(self, batches: Batches) -> TreeRows:
        maps, paths = zip(*(self.design.plan(subspace) for subspace, _ in batches), strict=True)
        values = torch.cat(
            [to_features(x) for to_features, (_, x) in zip(maps, batches, strict=True)]
        )
        sizes = torch.tensor([len(x) for _, x in batches])
        indices = [subspace.index for subspace, _ in batches]
        leaf = torch.tensor([self._leaves.setdefault(i, len(self._leaves)) for i in indices])
        weight = torch.tensor([self._weights.get(i, -1) for i in indices])
        per_batch = (
            part.repeat_interleave(sizes, 0) for part in (torch.stack(paths), leaf, weight)
        )
        return TreeRows(values[:, self.design.shared], values[:, self.design.own], *per_batch)

    def gram(self, theta: Tensor, left: TreeRows, right: TreeRows) -> Tensor:
        scale = torch.exp(-theta[self._scales])
        correlation = self._correlation(squared_distances(left.own * scale, right.own * scale))
        leaves = self._leaf_variance(theta, left)[:, None] * correlation * _same_leaf(left, right)
        return self.path_gram(theta, left, right) + leaves

    def diagonal(self, theta: Tensor, rows: TreeRows) -> Tensor:
        return self.path_diagonal(theta, rows) + self._leaf_variance(theta, rows)

    def path_gram(self, theta: Tensor, left: TreeRows, right: TreeRows) -> Tensor:
        """Covariances of z' c, shape (n, m)."""
        constant, offset, slope = theta[[self._constant, self._offset, self._slope]].exp()
        slopes = self._slopes(theta, left) @ self._slopes(theta, right).T
        path = constant * (left.passed @ right.passed.T) + slope * slopes
        return path + offset * _same_leaf(left, right)

    def path_diagonal(self, theta: Tensor, rows: TreeRows) -> Tensor:
        """Variances of z' c, shape (n,)."""
        constant, offset, slope = theta[[self._constant, self._offset, self._slope]].exp()
        slopes = self._slopes(theta, rows).square().sum(1)
        return constant * rows.passed.sum(1) + offset + slope * slopes

    def path_posterior(self, batches: Batches) -> tuple[Tensor, Tensor]:
        """Mean and variance of z' c, the summand of the score that the path determines (eq. 6).

        Shape (n,) each, differentiable in the shared parameters; the leaf's parameters have no
        effect.
        """
        rows = self.features(batches)
        cross = self.path_gram(self.theta, rows, self._seen)
        return self._conditioned.marginals(cross, self.path_diagonal(self.theta, rows))

    def condition(self, subspaces: list[Subspace], x: list[Array], z: Tensor) -> None:
        self._data = subspaces, x, z
        super().condition(subspaces, x, z)

    def with_pending(self, subspaces: Sequence[Subspace], x: Sequence[Array]) -> Self:
        return GP.with_pending(self, subspaces, x)

    def best_rows(self, subspace: Subspace, n: int = 3) -> list[Array]:
        """The rows of a leaf with the largest scores, best first."""
        subspaces, x, z = self._data
        rows = [at for at, one in enumerate(subspaces) if one.index == subspace.index]
        return [x[at] for at in sorted(rows, key=lambda at: -float(z[at]))[:n]]

    def _slopes(self, theta: Tensor, rows: TreeRows) -> Tensor:
        """The entries of z whose weights are slopes: parameters, or Fourier features of them."""
        if self._waves is None:
            return rows.shared
        directions, phases, nodes = self._waves
        angles = rows.shared @ directions * torch.exp(-theta[self._stretch]) + phases
        return math.sqrt(2.0 / N_FOURIER) * torch.cos(angles) * rows.passed[:, nodes]

    def _leaf_variance(self, theta: Tensor, rows: TreeRows) -> Tensor:
        """Variances of g_p, shape (n,); 0 if a leaf has no parameters of its own."""
        return torch.cat([theta.exp(), theta.new_zeros(1)])[rows.weight]


def _same_leaf(left: TreeRows, right: TreeRows) -> Tensor:
    return (left.leaf[:, None] == right.leaf).to(torch.float64)


def _inner_nodes(space: Space) -> list[Key]:
    if space.is_listable:
        n_passing = Counter(key for subspace in space.subspaces() for key in subspace.path)
        return [key for key, n in n_passing.items() if n > 1]
    parents = ((node.parameter, node.key) for node in space.nodes if node.parameter.is_structural)
    children = (child_keys(p, level, key) for p, key in parents for level in range(p.n_levels))
    return list(dict.fromkeys([ROOT, *itertools.chain.from_iterable(children)]))


class PathDesign:
    """Inner nodes and leaves of a tree, and the features of their parameters.

    An inner node is a vertex that several subspaces pass. If the subspaces are too many to list,
    all vertices count as inner nodes.

    Attributes:
        shared: indices of the inner nodes' features among those of all vertices.
        own: indices of the other features.
        n_parameters: number of parameters of all vertices.

    Args:
        space: whose tree it is.
    """

    def __init__(self, space: Space) -> None:
        self._vertices = space.vertices
        self._inner = {key: at for at, key in enumerate(_inner_nodes(space))}
        coordinates = [one for some in space.vertices.values() for one in some]
        self._number_of = {(one.key, one.name): at for at, one in enumerate(coordinates)}
        self._parameters = ParameterFeatures([one.parameter for one in coordinates])
        self.n_parameters = len(coordinates)
        is_shared = np.array(
            self.per_feature([s.key in self._inner for s in coordinates]), dtype=bool
        )
        self.shared = torch.from_numpy(np.flatnonzero(is_shared))
        self.own = torch.from_numpy(np.flatnonzero(~is_shared))
        self._plans: dict[int, tuple[FeatureMap, Tensor]] = {}

    def own_columns(self, subspace: Subspace) -> list[int]:
        """Columns of ``x`` whose parameters no other subspace has."""
        return [at for at, one in enumerate(subspace.free) if one.key not in self._inner]

    def shared_columns(self, subspace: Subspace) -> list[int]:
        """The other columns of ``x``."""
        return [at for at, one in enumerate(subspace.free) if one.key in self._inner]

    def numbers(self, subspace: Subspace) -> list[int]:
        """Index, among the parameters of all vertices, of each column of ``x``."""
        return [self._number_of[one.key, one.name] for one in subspace.free]

    def per_feature(self, per_parameter: Sequence[T]) -> list[T]:
        """Repeat a value per parameter for each of its features."""
        return [per_parameter[number] for number in self._parameters.owners]

    def plan(self, subspace: Subspace) -> tuple[FeatureMap, Tensor]:
        """Feature map and passed inner nodes, (n_inner,), that all rows of a subspace share."""
        if subspace.index not in self._plans:
            columns = [self._parameters.columns[number] for number in self.numbers(subspace)]
            base = torch.zeros(self._parameters.n_features, dtype=torch.float64)
            passed = torch.tensor([float(key in subspace.path) for key in self._inner]).double()
            self._plans[subspace.index] = FeatureMap(base, columns), passed
        return self._plans[subspace.index]

    def waves(self) -> tuple[Tensor, Tensor, Tensor]:
        """Random directions, (n_shared, n_waves), phases, and the inner node of each feature."""
        generator = torch.Generator().manual_seed(0)
        directions, phases, nodes = [torch.zeros(0, 0, dtype=torch.float64)], [], []
        for key, coordinates in self._vertices.items():
            n = ParameterFeatures([one.parameter for one in coordinates]).n_features
            direction = torch.randn(n, N_FOURIER, generator=generator, dtype=torch.float64)
            phase = torch.rand(N_FOURIER, generator=generator, dtype=torch.float64) * 2 * math.pi
            if key in self._inner:
                directions.append(direction)
                phases.append(phase)
                nodes += [self._inner[key]] * N_FOURIER
        phase = torch.cat([torch.zeros(0, dtype=torch.float64), *phases])
        return torch.block_diag(*directions), phase, torch.tensor(nodes, dtype=torch.long)
