"""Vertices of a space's tree: the points where parameters without children stand.

A vertex is the root, the children under one value of a structural parameter, or one element of a
repeated list.
"""

from __future__ import annotations

from nasbo.space.subspace import Slot
from nasbo.space.tree import Space
from nasbo.space.walk import ROOT, Key, child_keys


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
        lengths = [len(self.space.subspace(at).path) for at in picked]
        return max(1.0, sum(lengths) / len(lengths))
