"""Flattening of a space for packages without trees, and conversion of configs.

Each occurrence of a parameter in the tree has a name of its own, so that exclusive branches may
have parameters of one name with different ranges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nasbo.space.parameter import Config, Parameter, Value
from nasbo.space.subspace import Subspace
from nasbo.space.tree import Space
from nasbo.space.walk import Key, TreeNode


@dataclass(frozen=True)
class FlatParameter:
    """One occurrence of a parameter in the tree.

    Attributes:
        name: unique in the space.
        parameter: of the tree.
        parent: name of the parameter that determines whether it exists; "" at the root.
        levels: levels of the parent under which it exists.
    """

    name: str
    parameter: Parameter
    parent: str = ""
    levels: tuple[int, ...] = ()


def flat_name(parameter: Parameter, key: Key) -> str:
    """Unique name of an occurrence of a parameter."""
    branch, index = key
    entry = f"[{index}]" if index else ""
    return f"{branch}:{parameter.name}{entry}" if branch else parameter.name


def flatten(space: Space) -> list[FlatParameter]:
    """All parameters, parents before their children."""
    return [
        FlatParameter(_name(one), one.parameter, _name(one.parent), one.levels)
        for one in space.nodes
    ]


def to_flat(subspace: Subspace, config: Config) -> dict[str, int | float]:
    """A config as numbers by flat name, converted by ``Parameter.to_flat``."""
    return {
        flat_name(one.parameter, one.key): one.parameter.to_flat(one.value_in(config))
        for one in subspace.coordinates
    }


def from_flat(space: Space, flat: Mapping[str, float]) -> Config:
    """Inverse of ``to_flat``; values of inactive parameters are ignored."""

    def decide(parameter: Parameter, key: Key) -> Value:
        return parameter.from_flat(flat[flat_name(parameter, key)])

    return space.build_config(decide)


def _name(node: TreeNode | None) -> str:
    return "" if node is None else flat_name(node.parameter, node.key)
