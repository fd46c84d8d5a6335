"""The walk along the tree of a space: its nodes, and configs decided parameter by parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from nasbo.space.parameter import Config, Parameter, Value
from nasbo.space.subspace import branch_below

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
    inner = branch_below(branch, parameter, parameter.value_at(level))
    if not parameter.repeated:
        return [(inner, index)]
    return [(inner, at) for at in range(1, parameter.n_repeats(level) + 1)]


def names(group: Sequence[Parameter]) -> list[str]:
    """All names from some parameters down, each once, in the order of the document."""
    found: dict[str, None] = {}
    for parameter in group:
        found |= dict.fromkeys([parameter.name, *names(parameter.children)])
    return list(found)


def build_config(
    parameters: Sequence[Parameter], decide: Callable[[Parameter, Key], Value]
) -> Config:
    """A config, decided parameter by parameter, parents first.

    Args:
        parameters: the tree, at its root.
        decide: a parameter and where it stands to its value.
    """
    config: Config = {}

    def visit(group: Sequence[Parameter], key: Key) -> None:
        for parameter in group:
            value = decide(parameter, key)
            if key[1]:
                config[parameter.name][key[1] - 1] = value
            else:
                config[parameter.name] = value
            if parameter.is_structural:
                children = child_keys(parameter, parameter.level_of(value), key)
                config.update({name: [None] * len(children) for name in names(parameter.repeated)})
                for child in children:
                    visit(parameter.repeated or parameter.branch(value), child)

    visit(parameters, ROOT)
    return config
