"""Lists: ``units_0``, ``units_1``, ... under a count become one repeated parameter."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from nasbo.interchange.listing import Condition, Entry
from nasbo.space import Branch, Parameter
from nasbo.space.kinds import Integer
from nasbo.space.load import MAX_REPEATS
from nasbo.space.tree import find_clash
from nasbo.space.walk import names

_NUMBERED = re.compile(r"(.*?)(?:\[(\d+)\]|(\d+))")
_JOINTS = "_-: "
Group = tuple[Parameter, ...]
Labels = dict[str, tuple[str, int]]
"""Name of a list and place in it (from 1), by the name that a parameter had before."""


def under_counts(entries: Sequence[Entry]) -> list[Entry]:
    """Give the first places of each list the condition on its count that later places have.

    The other package omits it, as they always exist.
    """
    found = {one.name: one for one in entries}
    lists: dict[str, dict[int, Entry]] = {}
    for one in entries:
        if (split := _split(one.parameter.name)) is not None:
            lists.setdefault(split[0], {})[split[1]] = one
    for count in entries:
        if isinstance(count.parameter, Integer) and 0 < count.parameter.low <= MAX_REPEATS:
            always = Condition(count.name, frozenset(range(count.parameter.n_levels)))
            for places in lists.values():
                for one in _first_places(places, count):
                    found[one.name] = replace(one, exists=((always,),))
    return list(found.values())


def _first_places(places: Mapping[int, Entry], count: Entry) -> list[Entry]:
    """The places that a list always has, if it is one of this count."""
    parameter = count.parameter
    low, high = int(parameter.value_at(0)), int(parameter.value_at(parameter.n_levels - 1))  # type: ignore[arg-type]
    numbers = sorted(places)
    if low == high or numbers not in (list(range(high)), list(range(1, high + 1))):
        return []
    ordered = [places[at] for at in numbers]
    for at, one in enumerate(ordered[low:], start=1):
        beyond = Condition(count.name, frozenset(range(at, parameter.n_levels)))
        if not all(beyond in some for some in one.exists):
            return []
    return ordered[:low] if all(one.exists == count.exists for one in ordered[:low]) else []


def with_lists(group: Group) -> tuple[Group, Labels]:
    """The tree with lists wherever all that is under a count is numbered up to it.

    No list is made where one of its names would be taken.
    """
    labels: Labels = {}
    found = tuple(_one(parameter, labels) for parameter in group)
    return (group, {}) if find_clash(found) else (found, labels)


def _one(parameter: Parameter, labels: Labels) -> Parameter:
    repeated = _repeated(parameter)
    if repeated is not None and _agree(repeated[1], labels):
        template, own = repeated
        labels |= own
        return replace(parameter, branches=(), repeated=template)
    branches = tuple(
        Branch(below.value, tuple(_one(child, labels) for child in below.parameters))
        for below in parameter.branches
    )
    return replace(parameter, branches=branches)


def _agree(own: Labels, labels: Labels) -> bool:
    """Whether names and places are the same here as in other branches."""
    both = labels | own
    return len({*both.values()}) == len(both) and all(both[old] == labels[old] for old in labels)


def _repeated(parameter: Parameter) -> tuple[Group, Labels] | None:
    """The repeated parameters, if the branches of this integer can be written as a list; else
    ``None``.
    """
    if not isinstance(parameter, Integer) or not parameter.branches:
        return None
    if parameter.low < 0 or parameter.high > MAX_REPEATS:
        return None
    templates: set[Group] = set()
    labels: Labels = {}
    for level in range(parameter.n_levels):
        count = int(parameter.value_at(level))  # type: ignore[arg-type]
        found = _numbered(parameter.branch(count), count)
        if found is None:
            return None
        templates |= set(found)
        for old, name, at in _renamings(parameter.branch(count)):
            labels[old] = name, at + 1 - _first(parameter)
    return (templates.pop(), labels) if len(templates) == 1 else None


def _first(parameter: Parameter) -> int:
    """The number of a list's first place: 0 or 1."""
    return min(at for below in parameter.branches for _, _, at in _renamings(below.parameters))


def _renamings(group: Sequence[Parameter]) -> list[tuple[str, str, int]]:
    return [(name, *split) for name in names(group) if (split := _split(name)) is not None]


def _numbered(group: Group, count: int) -> list[Group] | None:
    """What stands at each place of a list, without numbers; ``None`` if these are no ``count``."""
    places: dict[int, list[Parameter]] = {}
    for parameter in group:
        split = _split(parameter.name)
        plain = None if split is None else _plain(parameter, split[1])
        if split is None or plain is None:
            return None
        places.setdefault(split[1], []).append(plain)
    numbers = sorted(places)
    if numbers not in (list(range(count)), list(range(1, count + 1))):
        return None
    return [tuple(places[at]) for at in numbers]


def _plain(parameter: Parameter, at: int) -> Parameter | None:
    """A tree without numbers in its names; ``None`` if one of them has another number."""
    split = _split(parameter.name)
    if split is None or split[1] != at or parameter.repeated:
        return None
    branches = []
    for below in parameter.branches:
        children = [_plain(child, at) for child in below.parameters]
        known = tuple(child for child in children if child is not None)
        if len(known) < len(children):
            return None
        branches.append(Branch(below.value, known))
    return replace(parameter, name=split[0], branches=tuple(branches))


def _split(name: str) -> tuple[str, int] | None:
    """A name as its stem and its number."""
    match = _NUMBERED.fullmatch(name)
    if match is None or not (stem := match[1].rstrip(_JOINTS)):
        return None
    return stem, int(match[2] or match[3])
