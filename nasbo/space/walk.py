"""Nodes of a space's tree: the occurrences of its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nasbo.space.parameter import Parameter, plain_text

Key = tuple[str, int]
"""Vertex of a parameter: its branch, and its list index (0 outside of lists)."""
ROOT: Key = ("", 0)


@dataclass(frozen=True)
class TreeNode:
    """One occurrence of a parameter.

    Attributes:
        parameter: of the tree.
        key: its vertex.
        parent: the node that determines whether it exists; ``None`` at the root.
        levels: levels of the parent under which it exists.
    """

    parameter: Parameter
    key: Key
    parent: TreeNode | None = None
    levels: tuple[int, ...] = ()


def tree_nodes(
    group: Sequence[Parameter],
    key: Key = ROOT,
    parent: TreeNode | None = None,
    levels: tuple[int, ...] = (),
) -> Iterator[TreeNode]:
    """All nodes in the order of the document, parents first, with lists at their full length."""
    for parameter in group:
        node = TreeNode(parameter, key, parent, levels)
        yield node
        for branch in parameter.branches:
            level = parameter.level_of(branch.value)
            (child,) = child_keys(parameter, level, key)
            yield from tree_nodes(branch.parameters, child, node, (level,))
        if parameter.repeated:
            top, least = parameter.n_levels - 1, parameter.n_repeats(0)
            for child in child_keys(parameter, top, key):
                under = tuple(range(max(child[1] - least, 0), top + 1))
                yield from tree_nodes(parameter.repeated, child, node, under)


def child_keys(parameter: Parameter, level: int, key: Key) -> list[Key]:
    """Vertices of the children of a structural parameter at a level."""
    branch, index = key
    above = f"{branch}." if branch else ""
    if not parameter.repeated:
        return [(f"{above}{parameter.name}={plain_text(parameter.value_at(level))}", index)]
    inner = f"{above}{parameter.name}[]"
    return [(inner, at) for at in range(1, parameter.n_repeats(level) + 1)]


def names(group: Sequence[Parameter]) -> list[str]:
    """All names of parameters and their descendants, each once, in the order of the document."""
    found: dict[str, None] = {}
    for parameter in group:
        found |= dict.fromkeys([parameter.name, *names(parameter.children)])
    return list(found)
