"""Search spaces: trees of parameters, with their subspaces counted and numbered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from math import prod
from typing import Any

from numpy.random import Generator

from nasbo.errors import ConfigError, shorten
from nasbo.space.kinds import Number
from nasbo.space.parameter import Config, Parameter, Value
from nasbo.space.subspace import Slot, Subspace, branch_below
from nasbo.space.walk import Key, TreeNode, build_config, names, tree_nodes

MAX_LISTED_SUBSPACES = 1_000


class Space:
    """A conditional search space: a forest of parameters, immutable.

    A subspace is one set of structural choices. Subspaces are numbered 0 to ``n_subspaces - 1`` in
    the order of the document and are found by arithmetic, so a space may have far more of them
    than could be listed.
    """

    def __init__(self, parameters: Sequence[Parameter], source: str = "space") -> None:
        self.parameters = tuple(parameters)
        self.source = source
        self.names: tuple[str, ...] = tuple(names(self.parameters))
        self.n_subspaces = _count(self.parameters)
        self._subspace = lru_cache(maxsize=4096)(self._build_subspace)

    def __repr__(self) -> str:
        return f"Space({self.source}: {len(self.names)} names, {self.n_subspaces} subspaces)"

    def __reduce__(self) -> tuple[type[Space], tuple[Any, ...]]:
        return Space, (self.parameters, self.source)

    @property
    def is_listable(self) -> bool:
        """Whether the subspaces are few enough to be visited one by one."""
        return self.n_subspaces <= MAX_LISTED_SUBSPACES

    def subspace(self, index: int) -> Subspace:
        """The subspace of a number."""
        if not 0 <= index < self.n_subspaces:
            raise IndexError(f"0 <= index < {self.n_subspaces} must hold, but got {index}")
        return self._subspace(index)

    def subspaces(self) -> Iterator[Subspace]:
        """All subspaces in order; for spaces that are ``is_listable``."""
        return (self.subspace(index) for index in range(self.n_subspaces))

    def random_subspace(self, rng: Generator) -> Subspace:
        """A subspace, each with the same probability."""
        return self.subspace(_random_below(self.n_subspaces, rng))

    def sample(self, rng: Generator) -> Config:
        """A config: uniform over the subspaces, then uniform inside."""
        return self.random_subspace(rng).sample_config(rng)

    def default_config(self) -> Config:
        """The config of all defaults (first choice or middle of the range where none is given)."""
        return self.build_config(lambda parameter, _: parameter.middle())

    @cached_property
    def nodes(self) -> tuple[TreeNode, ...]:
        """All parameters where they stand, parents first; lists at their full length."""
        return tuple(tree_nodes(self.parameters))

    def build_config(self, decide: Callable[[Parameter, Key], Value]) -> Config:
        """A config, decided parameter by parameter, parents first.

        Args:
            decide: a parameter and where it stands (branch, index in a list) to its value.
        """
        return build_config(self.parameters, decide)

    def canonical(self, config: Any) -> Config:
        """The config as the space itself would write it; ``ConfigError`` if it does not belong."""
        return self._read(config)[1]

    def subspace_of(self, config: Any) -> Subspace:
        """The subspace that a config belongs to; ``ConfigError`` if it belongs to none."""
        return self.subspace(self._read(config)[0])

    def fingerprint(self) -> str:
        """A hash of everything that decides which configs exist."""
        text = json.dumps(self.to_dict(), sort_keys=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """The space as plain values that ``load_space`` reads back to an equal space."""
        return _as_dict(self.parameters)

    def _build_subspace(self, index: int) -> Subspace:
        slots: list[Slot] = []
        lengths: dict[str, int] = {}
        _Walk(slots, lengths).group(self.parameters, index)
        return Subspace(index, tuple(slots), lengths)

    def _read(self, config: Any) -> tuple[int, Config]:
        if not isinstance(config, dict):
            raise ConfigError(f"a config must be a dict, got {type(config).__name__}")
        seen: Config = {}
        index = _rank(self.parameters, config, seen, 0)
        if extra := [key for key in config if key not in seen]:
            raise ConfigError(
                f"{', '.join(map(repr, extra))} must be absent under "
                f"{self.subspace(index).id}: it has {', '.join(seen)}"
            )
        return index, seen


class _Walk:
    """From a subspace's number to its slots: the number is read digit by digit along the tree."""

    def __init__(self, slots: list[Slot], lengths: dict[str, int]) -> None:
        self.slots, self.lengths = slots, lengths

    def group(
        self, group: Sequence[Parameter], rest: int, parent: str = "", branch: str = "", at: int = 0
    ) -> None:
        for position, parameter in enumerate(group):
            below = _count(group[position + 1 :])
            digit, rest = divmod(rest, below)
            self.one(parameter, digit, parent, branch, at)

    def one(self, parameter: Parameter, rest: int, parent: str, branch: str, at: int) -> None:
        if not parameter.is_structural:
            self.slots.append(Slot(parameter, at, parent, branch))
            return
        level, rest = _find_level(parameter, rest)
        value = parameter.value_at(level)
        self.slots.append(Slot(parameter, at, parent, branch, True, value))
        inner = branch_below(branch, parameter, value)
        if parameter.repeated:
            self.repeat(parameter, parameter.n_repeats(level), rest, inner)
        else:
            self.group(parameter.branch(value), rest, parameter.name, inner, at)

    def repeat(self, parameter: Parameter, times: int, rest: int, branch: str) -> None:
        self.lengths.update(dict.fromkeys(names(parameter.repeated), times))
        each = _count(parameter.repeated)
        for at in range(1, times + 1):
            digit, rest = divmod(rest, each ** (times - at))
            self.group(parameter.repeated, digit, parameter.name, branch, at)


def find_clash(group: Sequence[Parameter]) -> tuple[str, str] | None:
    """A name that two parameters active at the same time would share, and the rule it breaks."""
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


def _count(group: Sequence[Parameter]) -> int:
    return prod(parameter.n_subspaces for parameter in group)


def _find_level(parameter: Parameter, rest: int) -> tuple[int, int]:
    """The level that a structural parameter's digit falls on, and what is left of the digit."""
    position = 0
    for level, count in parameter.level_counts:
        if rest < level - position:
            return position + rest, 0
        rest -= level - position
        if rest < count:
            return level, rest
        rest -= count
        position = level + 1
    return position + rest, 0


def _offset(parameter: Parameter, level: int) -> int:
    """How many subspaces of a structural parameter come before a level."""
    before = [(at, count) for at, count in parameter.level_counts if at < level]
    return level - len(before) + sum(count for _, count in before)


def _rank(group: Sequence[Parameter], config: Config, seen: Config, at: int) -> int:
    """Number of the subspace of a config within ``group``; canonical values go into ``seen``."""
    rank = 0
    for parameter in group:
        rank = rank * parameter.n_subspaces + _rank_one(parameter, config, seen, at)
    return rank


def _rank_one(parameter: Parameter, config: Config, seen: Config, at: int) -> int:
    value = _take(parameter, config, seen, at)
    if not parameter.is_structural:
        return 0
    level = parameter.level_of(value)
    if parameter.repeated:
        return _offset(parameter, level) + _rank_repeated(parameter, value, config, seen)
    return _offset(parameter, level) + _rank(parameter.branch(value), config, seen, at)


def _rank_repeated(parameter: Parameter, times: Any, config: Config, seen: Config) -> int:
    inner = names(parameter.repeated)
    for name in inner:
        entries = config.get(name)
        if not isinstance(entries, list | tuple) or len(entries) != times:
            raise ConfigError(f"{name!r} must be a list of {times} entries, got {shorten(entries)}")
        seen[name] = [None] * times
    each, rank = _count(parameter.repeated), 0
    for at in range(1, times + 1):
        rank = rank * each + _rank(parameter.repeated, config, seen, at)
    for name in inner:
        _check_absent(name, config[name], seen[name])
    return rank


def _check_absent(name: str, entries: Sequence[Any], seen: Sequence[Any]) -> None:
    for place, (entry, known) in enumerate(zip(entries, seen, strict=True), start=1):
        if known is None and entry is not None:
            raise ConfigError(
                f"'{name}[{place}]' must be null: it does not exist, got {shorten(entry)}"
            )


def _take(parameter: Parameter, config: Config, seen: Config, at: int) -> Value:
    if parameter.name not in config:
        raise ConfigError(f"{parameter.name!r} is missing: it must be {parameter.range_text()}")
    raw = config[parameter.name]
    if not at:
        seen[parameter.name] = value = parameter.canonical(raw)
        return value
    seen[parameter.name][at - 1] = value = parameter.canonical(raw[at - 1])
    return value


def _as_dict(group: Sequence[Parameter]) -> dict[str, Any]:
    return {parameter.name: _one_as_dict(parameter) for parameter in group}


def _one_as_dict(parameter: Parameter) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": parameter.kind, "range": parameter.range_values()}
    if isinstance(parameter, Number) and parameter.log:
        entry["log"] = True
    if parameter.has_default:
        entry["default"] = parameter.default
    if parameter.repeated:
        entry["submodule"] = _as_dict(parameter.repeated)
    elif parameter.branches:
        entry["submodule"] = {b.value: _as_dict(b.parameters) for b in parameter.branches}
    return entry


def _random_below(n: int, rng: Generator) -> int:
    """A uniform integer below ``n``, however large (numpy's own stop at 64 bits)."""
    words = (n.bit_length() + 31) // 32 + 2
    number = 0
    for word in rng.integers(0, 2**32, size=words, dtype="uint32"):
        number = (number << 32) | int(word)
    return number % n
