"""Spaces for other packages: flat parameter names with their parents, and configs both ways.

Each parameter has one name per vertex of the tree that holds it, so that exclusive branches may
have parameters of one name with different ranges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nasbo.space import Config, Parameter, Space, Subspace, Value
from nasbo.surrogates.vertices import ROOT, Key, child_keys


@dataclass(frozen=True)
class FlatParameter:
    """A parameter at one vertex.

    Attributes:
        name: unique in the space.
        parameter: its node of the tree.
        parent: name of the parameter that decides whether it exists; "" at the root.
        levels: the levels of the parent under which it exists.
    """

    name: str
    parameter: Parameter
    parent: str = ""
    levels: tuple[int, ...] = ()


def flat_name(parameter: Parameter, key: Key) -> str:
    """The name of a parameter at a vertex."""
    branch, index = key
    place = f"[{index}]" if index else ""
    return f"{branch}:{parameter.name}{place}" if branch else parameter.name


def flatten(space: Space) -> list[FlatParameter]:
    """All parameters, parents before their children."""
    return list(_flatten(space.parameters, ROOT, "", ()))


def levels_of(subspace: Subspace, config: Config) -> dict[str, int | float]:
    """A config by flat names: the level of a choice or power of two, the value of a number."""
    flat: dict[str, int | float] = {}
    for slot in subspace.slots:
        entry = config[slot.name]
        value = entry[slot.index - 1] if slot.index else entry
        name = flat_name(slot.parameter, (slot.branch, slot.index))
        flat[name] = to_flat(slot.parameter, value)
    return flat


def to_flat(parameter: Parameter, value: Value) -> int | float:
    """The level of a choice or power of two, the value of a number."""
    if parameter.kind in ("int", "float"):
        assert isinstance(value, int | float)
        return value
    return parameter.level_of(value)


def from_flat(parameter: Parameter, value: int | float) -> Value:
    """Inverse of ``to_flat``."""
    if parameter.kind == "float":
        return min(max(float(value), parameter.low), parameter.high)
    return int(value) if parameter.kind == "int" else parameter.value_at(int(value))


def _flatten(
    group: Sequence[Parameter], key: Key, parent: str, levels: tuple[int, ...]
) -> Iterator[FlatParameter]:
    for parameter in group:
        name = flat_name(parameter, key)
        yield FlatParameter(name, parameter, parent, levels)
        for branch in parameter.branches:
            level = parameter.level_of(branch.value)
            (child,) = child_keys(parameter, level, *key)
            yield from _flatten(branch.parameters, child, name, (level,))
        if parameter.repeated:
            top = parameter.n_levels - 1
            for child in child_keys(parameter, top, *key):
                first = max(child[1] - int(parameter.low), 0)
                yield from _flatten(parameter.repeated, child, name, tuple(range(first, top + 1)))
