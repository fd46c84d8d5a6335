"""A space comes in; what its paths share (weights of inner nodes) and what leaves own goes out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from nasbo.space import Space, Subspace
from nasbo.space.vertices import VertexTree
from nasbo.space.walk import Key
from nasbo.surrogates.base import Batches
from nasbo.surrogates.correlations import CORRELATIONS, KernelName
from nasbo.surrogates.kernels import Priors, lengthscale_mean, squared_distances
from nasbo.surrogates.slots import SlotFeatures
from nasbo.surrogates.tree_evidence import LeafPairs

N_FOURIER = 16
"""Random Fourier features of an inner node."""
Table = dict[Key | int, int]
"""Where the weights of an inner node (by its key) and of a leaf (by its number) start."""


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
        self._slots = {k: SlotFeatures([s.parameter for s in v]) for k, v in tree.slots.items()}
        self._constant, self._offset = priors.add(2, -math.log(3.0), 1.0)
        (self._slope,) = priors.add(1, 0.0, 1.5)
        (self._stretch,) = priors.add(1, lengthscale_mean(1), 1.0)
        generator = torch.Generator().manual_seed(0)
        self._waves = {
            key: (
                torch.randn(slots.n_features, N_FOURIER, generator=generator, dtype=torch.float64),
                torch.rand(N_FOURIER, generator=generator, dtype=torch.float64) * 2 * math.pi,
            )
            for key, slots in self._slots.items()
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
        """Places for the weights of all nodes of some paths, behind those known already."""
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
        return self.raw(theta, table, batches) * (0.5 * theta[self.places(table)]).exp()

    def places(self, table: Table) -> Tensor:
        """Places of the log variance of each weight among the hyperparameters, (width,)."""
        places = torch.full((self.width(table),), self._slope, dtype=torch.long)
        for node, start in table.items():
            places[start] = self._offset if isinstance(node, int) else self._constant
        return places

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
        values = self._slots[key](x)
        if not self.is_fourier:
            return values
        directions, phases = self._waves[key]
        angles = values @ directions * torch.exp(-theta[self._stretch]) + phases
        return math.sqrt(2.0 / N_FOURIER) * torch.cos(angles)

    def _n_weights(self, node: Key | int) -> int:
        if isinstance(node, int) or node not in self._slots:
            return 1
        return 1 + (N_FOURIER if self.is_fourier else self._slots[node].n_features)


class LeafKernels:
    """The kernels K_p on the parameters of a leaf, hyperparameters per leaf."""

    def __init__(
        self, space: Space, design: PathDesign, priors: Priors, kernel: KernelName
    ) -> None:
        self.name: KernelName = kernel
        self._correlation = CORRELATIONS[kernel]
        self._columns: dict[int, list[int]] = {}
        self._slots: dict[int, SlotFeatures] = {}
        self._scales: dict[int, Tensor] = {}
        self._weights: dict[int, int] = {}
        for subspace in space.subspaces() if space.is_listable else ():
            if columns := design.own_columns(subspace):
                at = subspace.index
                self._columns[at] = columns
                self._slots[at] = SlotFeatures([subspace.free[c].parameter for c in columns])
                self._scales[at] = self._slots[at].add_scales(priors)
                (self._weights[at],) = priors.add(1, -math.log(3.0), 1.0)

    def __contains__(self, leaf: int) -> bool:
        """Whether a leaf has parameters of its own."""
        return leaf in self._columns

    def features(self, leaf: int, x: Tensor) -> Tensor:
        """Features of the leaf's parameters, (n, n_features), of rows (n, n_free)."""
        return self._slots[leaf](x[:, self._columns[leaf]])

    def gram(self, theta: Tensor, leaf: int, left: Tensor, right: Tensor) -> Tensor:
        """Covariances, shape (n, m), of features."""
        scale = torch.exp(-theta[self._scales[leaf]])
        distances = squared_distances(left * scale, right * scale)
        return self.variance(theta, leaf) * self._correlation(distances)

    def pairs(self, leaf: int, values: Tensor) -> LeafPairs:
        """Distances of all pairs of rows, given by their features, for the fit."""
        scales, owners = np.unique(self._scales[leaf].numpy(), return_inverse=True)
        distances = np.zeros((len(scales), len(values) ** 2))
        for owner, column in zip(owners, values.numpy().T, strict=True):
            distances[owner] += ((column[:, None] - column) ** 2).ravel()
        return LeafPairs(distances, scales, self._weights[leaf])

    def variance(self, theta: Tensor, leaf: int) -> Tensor:
        """Prior variance of a leaf's function, a scalar."""
        return theta[self._weights[leaf]].exp()
