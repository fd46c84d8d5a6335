"""Search spaces as trees of parameters, with counted and numbered subspaces."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

from numpy.random import Generator

from nasbo.errors import ConfigError, shorten
from nasbo.space.parameter import Array, Config, Parameter, Value
from nasbo.space.subspace import Coordinate, Subspace
from nasbo.space.walk import ROOT, Key, TreeNode, child_keys, names, tree_nodes

MAX_LISTED_SUBSPACES = 1_000


class Space:
    """A conditional search space: an immutable forest of parameters.

    A subspace is one set of structural choices. Subspaces are numbered 0 to ``n_subspaces - 1`` in
    the order of the document and are computed from their number, so a space may have far more of
    them than could be listed.
    """

    def __init__(self, parameters: Sequence[Parameter], source: str = "space") -> None:
        self.parameters = tuple(parameters)
        self.source = source
        self.names: tuple[str, ...] = tuple(names(self.parameters))
        self.n_subspaces = prod(parameter.n_subspaces for parameter in self.parameters)
        self._subspace = lru_cache(maxsize=4096)(self._build_subspace)

    def __repr__(self) -> str:
        return f"Space({self.source}: {len(self.names)} names, {self.n_subspaces} subspaces)"

    def __reduce__(self) -> tuple[type[Space], tuple[Any, ...]]:
        return Space, (self.parameters, self.source)

    @property
    def is_listable(self) -> bool:
        """Whether the subspaces are few enough to be enumerated."""
        return self.n_subspaces <= MAX_LISTED_SUBSPACES

    def subspace(self, index: int) -> Subspace:
        """The subspace with an index."""
        if not 0 <= index < self.n_subspaces:
            raise IndexError(f"0 <= index < {self.n_subspaces} must hold, but got {index}")
        return self._subspace(index)

    def subspaces(self) -> Iterator[Subspace]:
        """All subspaces in order, for a space that ``is_listable``."""
        return (self.subspace(index) for index in range(self.n_subspaces))

    def random_subspace(self, rng: Generator) -> Subspace:
        """A uniform random subspace."""
        return self.subspace(_random_below(self.n_subspaces, rng))

    def sample(self, rng: Generator) -> Config:
        """A random config: a uniform subspace, then uniform inside."""
        return self.random_subspace(rng).sample_config(rng)

    def default_config(self) -> Config:
        """The config of all defaults (by default the first choice or the middle of the range)."""
        return self.build_config(lambda parameter, _: parameter.middle())

    @cached_property
    def nodes(self) -> tuple[TreeNode, ...]:
        """All occurrences of parameters, parents first, with lists at their full length."""
        return tuple(tree_nodes(self.parameters))

    @cached_property
    def vertices(self) -> dict[Key, tuple[Coordinate, ...]]:
        """Vertices of the tree with their parameters without children.

        A vertex is the root, the children under one value of a structural parameter, or one element
        of a repeated list. Vertices without such parameters are left out.
        """
        coordinates: dict[Key, list[Coordinate]] = {node.key: [] for node in self.nodes}
        for node in self.nodes:
            if not node.parameter.is_structural:
                branch, index = node.key
                coordinates[node.key].append(Coordinate(node.parameter, index, branch=branch))
        return {key: tuple(some) for key, some in coordinates.items() if some}

    def build_config(self, decide: Callable[[Parameter, Key], Value]) -> Config:
        """Build a config parameter by parameter, parents first.

        Args:
            decide: returns the value of a parameter at a vertex (branch, list index).
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
                    lists = {name: [None] * len(children) for name in names(parameter.repeated)}
                    config.update(lists)
                    for child in children:
                        visit(parameter.repeated or parameter.branch(value), child)

        visit(self.parameters, ROOT)
        return config

    def canonical(self, config: Any) -> Config:
        """The config in the space's own form; ``ConfigError`` if it does
        not belong to the space.
        """
        return self._read(config)[1]

    def subspace_of(self, config: Any) -> Subspace:
        """The subspace of a config; ``ConfigError`` if it does not belong to the space."""
        return self.subspace(self._read(config)[0])

    def encode(self, config: Any) -> tuple[Subspace, Array]:
        """The subspace of a config, and its row in the subspace's unit cube, shape (n_free,)."""
        subspace = self.subspace_of(config)
        return subspace, subspace.encode(config)

    def fingerprint(self) -> str:
        """A hash of everything that determines which configs exist."""
        text = json.dumps(self.to_dict(), sort_keys=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """The space as plain values, from which ``load_space`` restores an equal space."""
        return _as_dict(self.parameters)

    def _build_subspace(self, index: int) -> Subspace:
        number = _Number(self.n_subspaces, index)
        parents, coordinates = {ROOT: ""}, []

        def decide(parameter: Parameter, key: Key) -> Value:
            branch, at = key
            if not parameter.is_structural:
                coordinates.append(Coordinate(parameter, at, parents[key], branch))
                return None
            level = number.take_level(parameter)
            value = parameter.value_at(level)
            coordinates.append(Coordinate(parameter, at, parents[key], branch, True, value))
            parents.update(dict.fromkeys(child_keys(parameter, level, key), parameter.name))
            return value

        config = self.build_config(decide)
        lengths = {name: len(value) for name, value in config.items() if isinstance(value, list)}
        return Subspace(index, tuple(coordinates), lengths)

    def _read(self, config: Any) -> tuple[int, Config]:
        """The index of a config's subspace, and the config in the space's own form."""
        if not isinstance(config, dict):
            raise ConfigError(f"a config must be a dict, got {type(config).__name__}")
        number = _Number(self.n_subspaces)

        def decide(parameter: Parameter, key: Key) -> Value:
            if parameter.name not in config:
                rule = f"it must be {parameter.range_text()}"
                raise ConfigError(f"{parameter.name!r} is missing: {rule}")
            raw = config[parameter.name]
            value = parameter.canonical(raw[key[1] - 1] if key[1] else raw)
            if parameter.is_structural:
                level = parameter.level_of(value)
                number.add_level(parameter, level)
                _check_lists(parameter, level, config)
            return value

        seen = self.build_config(decide)
        _check_absent(config, seen)
        if extra := [key for key in config if key not in seen]:
            raise ConfigError(
                f"{', '.join(map(repr, extra))} must be absent under "
                f"{self.subspace(number.value).id}: it has {', '.join(seen)}"
            )
        return number.value, seen


@dataclass
class _Number:
    """Index of a subspace, decoded or encoded level by level along the tree, parents first.

    Attributes:
        n_open: number of subspaces with the levels so far.
        value: the index; its remainder while it is decoded.
    """

    n_open: int
    value: int = 0

    def take_level(self, parameter: Parameter) -> int:
        """Decode the level of the next structural parameter."""
        digit = self.value // (self.n_open // parameter.n_subspaces)
        levels = range(parameter.n_levels)
        level = bisect_right(levels, digit, key=parameter.n_before) - 1
        self.value -= self._close(parameter, level)
        return level

    def add_level(self, parameter: Parameter, level: int) -> None:
        """Add the number of subspaces that precede the level of the next structural parameter."""
        self.value += self._close(parameter, level)

    def _close(self, parameter: Parameter, level: int) -> int:
        """Number of the open subspaces before a level; those of the level stay open."""
        n_after = self.n_open // parameter.n_subspaces
        n_before = parameter.n_before(level)
        self.n_open = n_after * (parameter.n_before(level + 1) - n_before)
        return n_after * n_before


def find_clash(group: Sequence[Parameter]) -> tuple[str, str] | None:
    """A name that two simultaneously active parameters would share, and the rule it breaks."""
    taken: set[str] = set()
    for parameter in group:
        below = set(names(parameter.children))
        if parameter.name in below:
            return parameter.name, "stands above another parameter of that name"
        if twice := taken & (below | {parameter.name}):
            return min(twice), "would be active twice at once: names must differ"
        taken |= below | {parameter.name}
        for inner in (parameter.repeated, *(branch.parameters for branch in parameter.branches)):
            if clash := find_clash(inner):
                return clash
    return None


def _check_lists(parameter: Parameter, level: int, config: Config) -> None:
    n = parameter.n_repeats(level) if parameter.repeated else 0
    for name in names(parameter.repeated):
        entries = config.get(name)
        if not isinstance(entries, list | tuple) or len(entries) != n:
            raise ConfigError(f"{name!r} must be a list of {n} entries, got {shorten(entries)}")


def _check_absent(config: Config, seen: Config) -> None:
    for name in (name for name, known in seen.items() if isinstance(known, list)):
        pairs = zip(config[name], seen[name], strict=True)
        for at, (entry, known) in enumerate(pairs, start=1):
            if known is None and entry is not None:
                rule = "must be null: it does not exist"
                raise ConfigError(f"'{name}[{at}]' {rule}, got {shorten(entry)}")


def _as_dict(group: Sequence[Parameter]) -> dict[str, Any]:
    return {parameter.name: _one_as_dict(parameter) for parameter in group}


def _one_as_dict(parameter: Parameter) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": parameter.kind, "range": parameter.range_values()}
    entry |= parameter.own_entries()
    if parameter.has_default:
        entry["default"] = parameter.default
    if parameter.repeated:
        entry["submodule"] = _as_dict(parameter.repeated)
    elif parameter.branches:
        entry["submodule"] = {b.value: _as_dict(b.parameters) for b in parameter.branches}
    return entry


def _random_below(n: int, rng: Generator) -> int:
    """A uniform integer below ``n``, of any size (numpy stops at 64 bits)."""
    words = (n.bit_length() + 31) // 32 + 2
    number = 0
    for word in rng.integers(0, 2**32, size=words, dtype="uint32"):
        number = (number << 32) | int(word)
    return number % n
