"""Rows of several subspaces: batches in their unit cubes, and feature rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.history.data import Data
from nasbo.space import Subspace

Array = NDArray[np.float64]
Batches = Sequence[tuple[Subspace, Tensor]]
"""Rows of several subspaces: each subspace with its ``x``, shape (n_i, n_free_i), float64."""


class Rows(NamedTuple):
    """Configs as torch features; kernels with hand-written derivatives
    read them as numpy arrays.

    Attributes:
        features: numbers as value - 0.5, choices one-hot times sqrt(0.5), 0 where inactive;
            shape (n, n_features), float64.
        active: whether a group exists: column 0 always, then units, then decisions;
            shape (n, 1 + n_units + n_decisions), bool.
    """

    features: Tensor
    active: Tensor

    @property
    def n(self) -> int:
        return len(self.features)

    @property
    def values(self) -> Array:
        """The features in numpy, shape (n, n_features)."""
        values: Array = self.features.detach().numpy()
        return values

    @property
    def gates(self) -> NDArray[np.bool_]:
        """``active`` as a numpy array."""
        gates: NDArray[np.bool_] = self.active.numpy()
        return gates

    def take(self, indices: NDArray[np.intp] | slice) -> Rows:
        """Some of the rows."""
        return Rows(self.features[indices], self.active[indices])


def joined(first: Any, second: Any) -> Any:
    """Concatenate the features of two sets of rows; tensors or tuples of tensors."""
    if isinstance(first, Tensor):
        return torch.cat([first, second])
    return type(first)(*(torch.cat(pair) for pair in zip(first, second, strict=True)))


def batches_of(data: Data) -> Batches:
    """The rows of data as batches, in the same order."""
    return as_batches(data.subspaces, data.x)


def as_batches(subspaces: Sequence[Subspace], x: Sequence[Array]) -> Batches:
    """Single configs as batches: consecutive rows of one subspace share a batch."""
    runs: list[tuple[Subspace, list[Array]]] = []
    for subspace, row in zip(subspaces, x, strict=True):
        if not runs or runs[-1][0].index != subspace.index:
            runs.append((subspace, []))
        runs[-1][1].append(row)
    return [(subspace, torch.from_numpy(np.stack(rows))) for subspace, rows in runs]


def by_subspace(subspaces: Sequence[Subspace]) -> dict[int, list[int]]:
    """Indices of the rows of each subspace, by the subspace's index."""
    indices: dict[int, list[int]] = {}
    for at, subspace in enumerate(subspaces):
        indices.setdefault(subspace.index, []).append(at)
    return indices


def gathered(batches: Batches) -> tuple[Batches, Tensor]:
    """One batch per subspace, and the index in them of each original row, shape (n,)."""
    groups = by_subspace([subspace for subspace, _ in batches]).values()
    together = [
        (batches[some[0]][0], torch.cat([batches[at][1] for at in some])) for some in groups
    ]
    return together, regrouped(batches, groups)


def regrouped(batches: Batches, groups: Iterable[Sequence[int]]) -> Tensor:
    """Index of each row, shape (n,), after batches are reordered group by group."""
    sizes = [len(x) for _, x in batches]
    rows = torch.arange(sum(sizes)).split(sizes)
    return torch.cat([rows[at] for some in groups for at in some]).argsort()
