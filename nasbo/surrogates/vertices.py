"""A space comes in; the vertices of its tree, paths through it, and configs along them go out.

A vertex is a place where plain parameters can stand: the root, under one value of a structural
parameter, or one element of a repeated list. It is known by its branch and its place in the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from nasbo.space import Config, Parameter, Slot, Space, Subspace, Value
from nasbo.space.subspace import branch_below

Key = tuple[str, int]
Path = Mapping[Key, Sequence[int]]
"""The vertices that a subspace passes, with the columns of ``x`` that belong to each."""

ROOT: Key = ("", 0)
MAX_CACHED_PATHS = 4096


class VertexTree:
    """The vertices of a space.

    A root without parameters is no vertex: all paths would share it, and it could say nothing
    that the standardisation of the scores has not said. Other vertices without parameters stay:
    they carry a constant.

    Attributes:
        space: whose tree it is.
        slots: the plain parameters of each vertex that has any, in the order of the document.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.slots: dict[Key, tuple[Slot, ...]] = dict(_vertices(space.parameters))
        self._paths: dict[int, Path] = {}

    def path(self, subspace: Subspace) -> Path:
        """The vertices from the root to the leaves of a subspace."""
        if subspace.index not in self._paths:
            if len(self._paths) >= MAX_CACHED_PATHS:
                self._paths.clear()
            self._paths[subspace.index] = _path(subspace)
        return self._paths[subspace.index]

    def mean_path_length(self) -> float:
        """Vertices per path, in the mean over the subspaces (at most 200 of them)."""
        n = self.space.n_subspaces
        picked = range(0, n, max(1, n // 200))
        lengths = [len(_path(self.space.subspace(at))) for at in picked]
        return max(1.0, sum(lengths) / len(lengths))


def child_keys(parameter: Parameter, level: int, branch: str, index: int) -> list[Key]:
    """The vertices that a level of a structural parameter opens."""
    inner = branch_below(branch, parameter, parameter.value_at(level))
    if not parameter.repeated:
        return [(inner, index)]
    times = int(parameter.low) + level
    return [(inner, at) for at in range(1, times + 1)]


def walk(space: Space, decide: Callable[[Parameter, Key], Value]) -> Config:
    """A config, decided parameter by parameter, parents first.

    Args:
        space: whose tree is walked.
        decide: a parameter and the vertex where it stands to its value.
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
                children = child_keys(parameter, parameter.level_of(value), *key)
                for name in dict.fromkeys(_names(parameter.repeated)):
                    config[name] = [None] * len(children)
                for child in children:
                    visit(parameter.repeated or parameter.branch(value), child)

    visit(space.parameters, ROOT)
    return config


def _vertices(
    group: Sequence[Parameter], branch: str = "", index: int = 0
) -> Iterator[tuple[Key, tuple[Slot, ...]]]:
    plain = tuple(Slot(p, index, branch=branch) for p in group if not p.is_structural)
    if plain:
        yield (branch, index), plain
    for parameter in group:
        for child in parameter.branches:
            level = parameter.level_of(child.value)
            for key in child_keys(parameter, level, branch, index):
                yield from _vertices(child.parameters, *key)
        if parameter.repeated:
            for key in child_keys(parameter, parameter.n_levels - 1, branch, index):
                yield from _vertices(parameter.repeated, *key)


def _path(subspace: Subspace) -> Path:
    columns: dict[Key, list[int]] = {ROOT: []}
    for slot in subspace.slots:
        if slot.is_fixed:
            level = slot.parameter.level_of(slot.value)
            for key in child_keys(slot.parameter, level, slot.branch, slot.index):
                columns.setdefault(key, [])
    for column, slot in enumerate(subspace.free):
        columns[slot.branch, slot.index].append(column)
    if not columns[ROOT]:
        del columns[ROOT]
    return columns


def _names(group: Sequence[Parameter]) -> Iterator[str]:
    for parameter in group:
        yield parameter.name
        for branch in parameter.branches:
            yield from _names(branch.parameters)
