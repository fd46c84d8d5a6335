"""Flat list of conditional parameters: the form that other packages give their spaces.

Such a space has no tree. Each parameter has a name of its own, and conditions on the values of
others under which it exists.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nasbo.errors import ConfigError, shorten
from nasbo.space import Config, Parameter, Space, Value
from nasbo.space.flat import flat_name
from nasbo.space.kinds import Listed
from nasbo.space.walk import Key, TreeNode

TOLERANCE = 1e-9
"""Other packages round numbers: so far beyond an end, as a share of it, they belong to a range."""


@dataclass(frozen=True)
class Condition:
    """A parameter exists and is at one of some levels."""

    parent: str
    levels: frozenset[int]


Alternatives = tuple[tuple[Condition, ...], ...]
"""Conditions in disjunctive normal form."""
ALWAYS: Alternatives = ((),)


@dataclass(frozen=True)
class Entry:
    """A parameter of a flat list.

    Attributes:
        name: in the other package.
        parameter: with its name in nasbo, without children.
        exists: when; all conditions of one alternative hold.
    """

    name: str
    parameter: Parameter
    exists: Alternatives = ALWAYS


@dataclass(frozen=True)
class Translation:
    """A space, and the names that its parameters have in another package.

    Attributes:
        names: by where a parameter stands, and its own name.
    """

    space: Space
    names: Mapping[tuple[Key, str], str]

    def values(self, config: Config) -> dict[str, Value]:
        """A config of the space as values by the other package's names."""
        coordinates = self.space.subspace_of(config).coordinates
        return {self.names[one.key, one.name]: one.value_in(config) for one in coordinates}

    def config(self, values: Mapping[str, Value]) -> Config:
        """The config of the space that the other package's values are.

        Raises:
            ConfigError: a value is missing, outside its range, or of no parameter that exists.
        """
        used: set[str] = set()

        def decide(parameter: Parameter, key: Key) -> Value:
            name = self.names[key, parameter.name]
            if name not in values:
                raise ConfigError(f"{name!r} is missing: it must be {parameter.range_text()}")
            used.add(name)
            return within(parameter, values[name])

        config = self.space.build_config(decide)
        if extra := [name for name in values if name not in used]:
            raise ConfigError(f"{extra[0]!r} must be absent, got {shorten(values[extra[0]])}")
        return config


def within(parameter: Parameter, value: Any) -> Value:
    """A value of a range as the space itself would write it, also if it was rounded."""
    value = value.item() if hasattr(value, "item") else value
    if parameter.is_continuous and isinstance(value, float):
        low, high, _ = parameter.flat_range
        slack = TOLERANCE * max(abs(low), abs(high))
        if low - slack <= value <= high + slack:
            return parameter.from_flat(value)
    if isinstance(parameter, Listed) and isinstance(value, float):
        numbers = [one for one in parameter.values if type(one) is float]
        value = next((one for one in numbers if math.isclose(one, value, rel_tol=TOLERANCE)), value)
    return parameter.canonical(value)


def listing_of(space: Space) -> tuple[list[Entry], Translation]:
    """The flat list of a space, parents before their children.

    Parameters of one name and one range in branches that exclude each other become one entry.
    Lists become one entry for each place, such as ``units[1]``.
    """
    names = _outer_names(space.nodes)
    n_places = Counter(names.values())
    alternatives: dict[str, list[tuple[Condition, ...]]] = {}
    parameters: dict[str, Parameter] = {}
    for node in space.nodes:
        name = names[node.key, node.parameter.name]
        parameters.setdefault(name, _bare(node.parameter))
        alternatives.setdefault(name, []).append(_path(node, names, n_places))
    entries = [Entry(name, one, united(alternatives[name])) for name, one in parameters.items()]
    return entries, Translation(space, names)


def short_name(space: Space) -> str:
    """The name of a space without folders, in letters that any text can hold."""
    return re.sub(r"[^\w.:-]", "_", Path(space.source).name.removesuffix(".yaml")) or "space"


def _path(
    node: TreeNode, names: Mapping[tuple[Key, str], str], n_places: Mapping[str, int]
) -> tuple[Condition, ...]:
    """The condition on a node's parent; where the parent occurs several times in the tree, also the
    parent's own conditions.
    """
    if node.parent is None:
        return ()
    parent = names[node.parent.key, node.parent.parameter.name]
    above = _path(node.parent, names, n_places) if n_places[parent] > 1 else ()
    return (*above, Condition(parent, frozenset(node.levels)))


def _outer_names(nodes: Iterable[TreeNode]) -> dict[tuple[Key, str], str]:
    names: dict[tuple[Key, str], str] = {}
    known: dict[str, Parameter] = {}
    for node in nodes:
        parameter, index = _bare(node.parameter), node.key[1]
        name = f"{parameter.name}[{index}]" if index else parameter.name
        if known.setdefault(name, parameter) != parameter:  # another range in another branch
            name = flat_name(parameter, node.key)
            while known.setdefault(name, parameter) != parameter:
                name += "'"
        names[node.key, parameter.name] = name
    return names


def _bare(parameter: Parameter) -> Parameter:
    return replace(parameter, branches=(), repeated=())


def united(alternatives: Sequence[tuple[Condition, ...]]) -> Alternatives:
    """The same alternatives, merged where they differ only in one parent's levels."""
    found = list(dict.fromkeys(alternatives))
    if () in found:
        return ALWAYS
    for at, one in enumerate(found):
        for other in found[at + 1 :]:
            if (both := _union(one, other)) is not None:
                rest = [item for item in found if item not in (one, other)]
                return united([*rest[:at], both, *rest[at:]])
    return tuple(found)


def _union(
    one: tuple[Condition, ...], other: tuple[Condition, ...]
) -> tuple[Condition, ...] | None:
    if [c.parent for c in one] != [c.parent for c in other]:
        return None
    differing = [at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    if len(differing) != 1:
        return None
    (at,) = differing
    both = Condition(one[at].parent, one[at].levels | other[at].levels)
    return (*one[:at], both, *one[at + 1 :])
