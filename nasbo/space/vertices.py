"""Vertices of a space's tree: the points where parameters without children stand.

A vertex is the root, the children under one value of a structural parameter, or one element of a
repeated list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nasbo.space.subspace import Slot, Subspace
from nasbo.space.tree import Space
from nasbo.space.walk import ROOT, Key, child_keys

Path = Mapping[Key, Sequence[int]]
"""The vertices that a subspace passes, with the columns of ``x`` that belong to each."""

MAX_CACHED_PATHS = 4096


class VertexTree:
    """The vertices of a space.

    A root without parameters is no vertex: all paths would share it, and it could say nothing
    that the standardisation of the scores has not said. Other vertices without parameters stay:
    they carry a constant.

    Attributes:
        space: whose tree it is.
        slots: the parameters without children of each vertex that has any, in the order of the
            document.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        slots: dict[Key, list[Slot]] = {}
        for node in space.nodes:
            here = slots.setdefault(node.key, [])
            if not node.parameter.is_structural:
                branch, index = node.key
                here.append(Slot(node.parameter, index, branch=branch))
        self.slots = {key: tuple(some) for key, some in slots.items() if some}
        self._paths: dict[int, Path] = {}

    def path(self, subspace: Subspace) -> Path:
        """The vertices from the root to the leaves of a subspace."""
        if subspace.index not in self._paths:
            if len(self._paths) >= MAX_CACHED_PATHS:
                self._paths.clear()
            self._paths[subspace.index] = _path(subspace)
        return self._paths[subspace.index]

    def vertices(self) -> list[Key]:
        """All vertices, also those without parameters."""
        root = [ROOT] if ROOT in self.slots else []
        below = (
            key
            for node in self.space.nodes
            if node.parameter.is_structural
            for level in range(node.parameter.n_levels)
            for key in child_keys(node.parameter, level, node.key)
        )
        return list(dict.fromkeys([*root, *below]))

    def mean_path_length(self) -> float:
        """Vertices per path, in the mean over the subspaces (at most 200 of them)."""
        n = self.space.n_subspaces
        picked = range(0, n, max(1, n // 200))
        lengths = [len(_path(self.space.subspace(at))) for at in picked]
        return max(1.0, sum(lengths) / len(lengths))


def _path(subspace: Subspace) -> Path:
    columns: dict[Key, list[int]] = {ROOT: []}
    for slot in subspace.slots:
        if slot.is_fixed:
            level = slot.parameter.level_of(slot.value)
            for key in child_keys(slot.parameter, level, (slot.branch, slot.index)):
                columns.setdefault(key, [])
    for column, slot in enumerate(subspace.free):
        columns[slot.branch, slot.index].append(column)
    if not columns[ROOT]:
        del columns[ROOT]
    return columns
