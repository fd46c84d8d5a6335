"""Trees of flat lists: conditions become branches.

A condition on one parameter is a branch of it. Conditions on several parameters are nested: the
parameters then stand one below the other, written once under each value, and the configs are the
same. Parameters of which none depends on the other stay side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from nasbo.errors import SpaceError
from nasbo.interchange.listing import ALWAYS, Alternatives, Entry, Translation
from nasbo.interchange.lists import under_counts, with_lists
from nasbo.space import Branch, Parameter, Space
from nasbo.space.document import MAX_NODES
from nasbo.space.tree import find_clash

MAX_LEVELS = 1_000
"""Parameters of more levels decide nothing: their branches could not be listed."""


@dataclass(frozen=True)
class Grown:
    """A tree of a flat list.

    Attributes:
        translation: the space, and the names of the list.
        losses: what the tree does not say, in words.
        notes: what it says in another way.
    """

    translation: Translation
    losses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def space(self) -> Space:
        return self.translation.space


def grow(entries: Sequence[Entry], source: str = "space") -> Grown:
    """The space of a flat list.

    Raises:
        SpaceError: its branches are too many, or parameters exist only under each other.
    """
    entries, losses = _without_wide_parents(entries)
    parameters, labels = with_lists(_Grower(source).group(under_counts(entries)))
    if not parameters:
        raise SpaceError(f"{source}: is empty: a space needs at least one parameter")
    if clash := find_clash(parameters):
        raise SpaceError(f"{source}: {clash[0]!r} {clash[1]}")
    space = Space(parameters, source)
    outer = {(one.parameter.name, 0): one.name for one in entries}
    outer |= {labels[n]: one.name for one in entries if (n := one.parameter.name) in labels}
    names = {
        (node.key, node.parameter.name): outer[node.parameter.name, node.key[1]]
        for node in space.nodes
    }
    return Grown(Translation(space, names), losses, _list_notes(labels))


def _list_notes(labels: dict[str, tuple[str, int]]) -> tuple[str, ...]:
    """Lists that got their names here; names with brackets speak for themselves."""
    first = {name: old for old, (name, at) in reversed(labels.items()) if at == 1}
    return tuple(
        f"{old!r} and its like are the list {name!r}"
        for name, old in reversed(first.items())
        if old != f"{name}[1]"
    )


def _without_wide_parents(entries: Sequence[Entry]) -> tuple[list[Entry], tuple[str, ...]]:
    """The entries without conditions on floats and on integers of very many values."""
    wide = {
        one.name: one.parameter
        for one in entries
        if one.parameter.is_continuous or one.parameter.n_levels > MAX_LEVELS
    }
    kept, losses = [], []
    for one in entries:
        names = dict.fromkeys(c.parent for some in one.exists for c in some if c.parent in wide)
        for name in names:
            told = wide[name].range_text()
            losses.append(
                f"{one.name!r} exists under some values of {name!r} only, {told}: branches need "
                "values that can be listed, so it exists under all of them"
            )
        exists = [tuple(c for c in some if c.parent not in wide) for some in one.exists]
        kept.append(replace(one, exists=ALWAYS if () in exists else tuple(exists)))
    return kept, tuple(losses)


class _Grower:
    """Counts parameters, so that conditions on many parameters do not grow without bound."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.n_parameters = 0

    def group(self, entries: Sequence[Entry]) -> tuple[Parameter, ...]:
        """The trees of entries, side by side."""
        return tuple(self._tree(part) for part in _parts(entries))

    def _tree(self, entries: Sequence[Entry]) -> Parameter:
        """The tree of entries that depend on each other."""
        root = self._root(entries)
        self._count(1)
        if len(entries) == 1:
            return root.parameter
        grown: dict[tuple[Entry, ...], tuple[tuple[Parameter, ...], int]] = {}
        branches = []
        for level in range(root.parameter.n_levels):
            below = tuple(under(entries, root.name, level))
            if below not in grown:
                before = self.n_parameters
                grown[below] = self.group(below), self.n_parameters - before
            else:
                self._count(grown[below][1])
            if below:
                branches.append(Branch(root.parameter.value_at(level), grown[below][0]))
        return replace(root.parameter, branches=tuple(branches))

    def _root(self, entries: Sequence[Entry]) -> Entry:
        """The entry that always exists and decides about most others."""
        n_decided = Counter(c.parent for one in entries for some in one.exists for c in some)
        certain = [one for one in entries if one.exists == ALWAYS]
        if not certain:
            names = ", ".join(repr(one.name) for one in entries)
            raise SpaceError(f"{self.source}: {names} exist only under each other")
        return max(certain, key=lambda one: n_decided[one.name])

    def _count(self, n: int) -> None:
        self.n_parameters += n
        if self.n_parameters > MAX_NODES:
            rule = f"conditions must expand to at most {MAX_NODES} parameters"
            raise SpaceError(f"{self.source}: {rule}, these expand to more")


def under(entries: Iterable[Entry], name: str, level: int) -> list[Entry]:
    """What is left of entries where one of them is at a level: the others that may exist."""
    found = [
        replace(one, exists=_given(one.exists, name, level)) for one in entries if one.name != name
    ]
    while dead := {one.name for one in found if not one.exists}:
        found = [
            replace(one, exists=_without(one.exists, dead)) for one in found if one.name not in dead
        ]
    return found


def _given(exists: Alternatives, name: str, level: int) -> Alternatives:
    held = [
        tuple(c for c in some if c.parent != name)
        for some in exists
        if all(level in c.levels for c in some if c.parent == name)
    ]
    return ALWAYS if () in held else tuple(dict.fromkeys(held))


def _without(exists: Alternatives, dead: set[str]) -> Alternatives:
    return tuple(some for some in exists if not any(c.parent in dead for c in some))


def _parts(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Entries that depend on each other together, in the order of their first ones."""
    home = {one.name: one.name for one in entries}

    def find(name: str) -> str:
        while home[name] != name:
            home[name] = name = home[home[name]]
        return name

    for one in entries:
        for parent in {c.parent for some in one.exists for c in some}:
            home[find(one.name)] = find(parent)
    parts: dict[str, list[Entry]] = {}
    for one in entries:
        parts.setdefault(find(one.name), []).append(one)
    return list(parts.values())
