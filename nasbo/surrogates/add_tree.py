"""Add-Tree GP: posterior of the score and of each vertex."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.gp.features import ParameterFeatures
from nasbo.gp.kernels import ARDKernel, KernelName
from nasbo.gp.rows import Batches
from nasbo.space import Coordinate, Space, Subspace
from nasbo.space.subspace import Path
from nasbo.space.walk import ROOT, Key
from nasbo.surrogates.base import GP, KernelGP
from nasbo.surrogates.lengthscales import shortest

Array = NDArray[np.float64]


@dataclass(frozen=True)
class VertexRows:
    """Rows by vertex: indices of the rows that pass it, shape (k,), and their features."""

    members: dict[Key, tuple[Tensor, Tensor]]
    n: int


class AddTreeGP(KernelGP):
    """GP with the additive tree-structured covariance of Ma and Blaschko (2020).

    k(x, x') is the sum, over the vertices that the paths of both configs pass, of a kernel on the
    vertex' own parameters (definition 4; algorithm 1 with its delta kernels). A vertex without
    parameters has a constant kernel; all constants share one variance. A config that passes no
    vertex (all its lists are empty) gets a constant kernel of its own.

    Departures from the paper: priors on all hyperparameters (it maximises the likelihood), one-hot
        choices, and a lengthscale per parameter. We keep one n × n matrix; rows that share no
        vertex have covariance 0, so the posterior is that of section 4.1.

    Args:
        space: the space of all data.
        kernel: ``se`` as in the paper's experiments, or ``matern`` (5/2).
    """

    def __init__(self, space: Space, kernel: KernelName = "se") -> None:
        super().__init__(space)
        log_weight = -math.log(mean_path_length(space))

        def add(coordinates: Sequence[Coordinate]) -> tuple[ParameterFeatures, ARDKernel]:
            own = ParameterFeatures([one.parameter for one in coordinates])
            return own, ARDKernel.add_to(self.priors, own.owners, log_weight, kernel)

        self._vertices = {key: add(coordinates) for key, coordinates in space.vertices.items()}
        self._constant = add(())

    def features(self, batches: Batches) -> VertexRows:
        """The rows that pass each vertex, with their features there."""
        parts: dict[Key, list[tuple[Tensor, Tensor]]] = {}
        start = 0
        for subspace, x in batches:
            here = torch.arange(start, start + len(x))
            start += len(x)
            for key, columns in self._path(subspace).items():
                features, _ = self._vertex(key)
                parts.setdefault(key, []).append((here, features(x[:, list(columns)])))
        members = {}
        for key, some in parts.items():
            indices, values = zip(*some, strict=True)
            members[key] = torch.cat(indices), torch.cat(values)
        return VertexRows(members, start)

    def gram(self, theta: Tensor, left: VertexRows, right: VertexRows) -> Tensor:
        # Without shared vertices the score is constant: keep ``x`` in the autograd graph.
        open_way = sum((values.sum() for _, values in left.members.values()), torch.zeros(()))
        K = 0.0 * open_way + torch.zeros(left.n, right.n, dtype=torch.float64)
        for key, (rows, values) in left.members.items():
            if key in right.members:
                others, there = right.members[key]
                block = self._vertex(key)[1].gram(theta, values, there)
                K = K.index_put((rows[:, None], others), block, accumulate=True)
        return K

    def diagonal(self, theta: Tensor, rows: VertexRows) -> Tensor:
        variance = torch.zeros(rows.n, dtype=torch.float64)
        for key, (indices, _) in rows.members.items():
            here = self._vertex(key)[1].variance(theta).expand(len(indices))
            variance = variance.index_add(0, indices, here)
        return variance

    def lengthscales(self) -> dict[str, float]:
        lengths: list[tuple[str, float]] = []
        for key, coordinates in self.space.vertices.items():
            features, kernel = self._vertices[key]
            starts = [start for start, _ in features.columns]
            own = self.theta[kernel.scales[starts]].exp().tolist()
            lengths += zip([one.label for one in coordinates], own, strict=True)
        return shortest(lengths)

    def condition(self, subspaces: list[Subspace], x: list[Array], z: Tensor) -> None:
        self._data = subspaces, x, z
        super().condition(subspaces, x, z)

    def with_pending(self, subspaces: Sequence[Subspace], x: Sequence[Array]) -> Self:
        return GP.with_pending(self, subspaces, x)

    def vertex_posterior(self, key: Key, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of one vertex' summand of the score, (n,) each,
        differentiable in ``x``.

        The means of the vertices of a path add up to the mean of the score. ``x`` holds rows of the
        vertex' own parameters in the unit cube, shape (n, n_coordinates).
        """
        features, _ = self._vertex(key)
        rows = VertexRows({key: (torch.arange(len(x)), features(x))}, len(x))
        cross, variance = self.covariance(rows, self._seen), self.variance(rows)
        return self._conditioned.marginals(cross, variance)

    def _path(self, subspace: Subspace) -> Path:
        """The vertices of a subspace; the bare root if there are none."""
        return subspace.path or {ROOT: ()}

    def _vertex(self, key: Key) -> tuple[ParameterFeatures, ARDKernel]:
        """Features and kernel of a vertex; constant without parameters."""
        return self._vertices.get(key, self._constant)


def mean_path_length(space: Space) -> float:
    """Mean number of vertices per path, over at most about 200 subspaces."""
    n = space.n_subspaces
    lengths = [len(space.subspace(at).path) for at in range(0, n, max(1, n // 200))]
    return max(1.0, sum(lengths) / len(lengths))
