"""Nodes of the tree of a space: parameters where they stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nasbo.space.parameter import Parameter, plain_text

Key = tuple[str, int]
"""Where a parameter stands: its branch, and its index in a list (0 outside of lists)."""
ROOT: Key = ("", 0)


@dataclass(frozen=True)
class TreeNode:
    """A parameter where it stands.

    Attributes:
        parameter: of the tree.
        key: where.
        parent: the node that decides whether it exists; ``None`` at the root.
        levels: of the parent under which it exists.
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
    """All nodes in the order of the document, parents first; lists at their full length."""
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
    """Where the children of a structural parameter stand at a level."""
    branch, index = key
    above = f"{branch}." if branch else ""
    if not parameter.repeated:
        return [(f"{above}{parameter.name}={plain_text(parameter.value_at(level))}", index)]
    inner = f"{above}{parameter.name}[]"
    return [(inner, at) for at in range(1, parameter.n_repeats(level) + 1)]


def names(group: Sequence[Parameter]) -> list[str]:
    """All names from some parameters down, each once, in the order of the document."""
    found: dict[str, None] = {}
    for parameter in group:
        found |= dict.fromkeys([parameter.name, *names(parameter.children)])
    return list(found)
