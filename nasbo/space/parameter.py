"""Parameters of the tree: what all kinds share."""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nasbo.errors import ConfigError, shorten
from nasbo.space.document import Node

Array = NDArray[np.float64]
Value = str | int | float | bool | None
Config = dict[str, Any]
RangeKey = tuple[str, float, float, bool, str]
RELAXED_LEVELS = 8
"""Integers with more levels than this are searched like floats, then snapped."""
_WORD = re.compile(r"[^\W\d][\w-]*")


def value_key(value: Any) -> tuple[str, Value] | None:
    """What two equal values share: ``1`` and ``1.0`` do, ``1`` and ``True`` do not.

    ``None`` for what is no single plain value.
    """
    if value is None or isinstance(value, bool):
        return "constant", value
    if isinstance(value, str):
        return "text", value
    return ("number", value) if isinstance(value, int | float) else None


def plain_text(value: Any) -> str:
    """A value in words; text that could be mistaken for something else stands in quotes."""
    if isinstance(value, list):
        return "[" + " ".join(map(plain_text, value)) + "]"
    if not isinstance(value, str):
        return str(value)
    is_word = _WORD.fullmatch(value) and value not in ("None", "True", "False")
    return value if is_word else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Branch:
    """The parameters that exist only while their parent has ``value``."""

    value: Value
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Parameter(ABC):
    """A parameter of the tree; ``nasbo.space.kinds`` has a class for each ``type:`` of a file.

    ``branches`` holds the children by value, ``repeated`` the children that come once per count of
    an integer.

    Attributes:
        kind: its ``type:`` in a file.
        keys: of its entry in a file, beyond those that all kinds have.
        is_ordered: whether neighbouring levels are alike; a choice is not.
        is_even: whether its levels are at equal distances in [0, 1].
    """

    name: str
    default: Value = field(default=None, kw_only=True)
    has_default: bool = field(default=False, kw_only=True)
    branches: tuple[Branch, ...] = field(default=(), kw_only=True)
    repeated: tuple[Parameter, ...] = field(default=(), kw_only=True)

    kind: ClassVar[str]
    keys: ClassVar[tuple[str, ...]] = ()
    is_ordered: ClassVar[bool] = True

    # What a kind says

    @classmethod
    @abstractmethod
    def read(cls, name: str, node: Node, own: Mapping[str, Node]) -> Self:
        """The parameter of a file's entry; ``SpaceError`` with its line if it is none.

        Args:
            name: of the parameter.
            node: its ``range:``.
            own: what stands under ``keys``, as far as they are given.
        """

    @property
    @abstractmethod
    def n_levels(self) -> int:
        """How many values there are; 0 where they are endless."""

    @abstractmethod
    def value_at(self, level: int) -> Value:
        """The value of a level, 0 to ``n_levels - 1``."""

    @abstractmethod
    def find_level(self, value: Any) -> int | None:
        """The level of a value; ``None`` if it is outside the range."""

    @abstractmethod
    def range_text(self) -> str:
        """The range in words, for messages and drawings."""

    @abstractmethod
    def range_values(self) -> list[Any]:
        """The range as a file has it."""

    def own_entries(self) -> dict[str, Any]:
        """What a file has under ``keys``, without what need not be said."""
        return {}

    @property
    @abstractmethod
    def range_key(self) -> RangeKey:
        """What a parameter is but for its name; can be sorted."""

    @property
    def is_even(self) -> bool:
        return True

    # Levels

    @property
    def is_continuous(self) -> bool:
        """Whether there is a value between any two others."""
        return self.n_levels == 0

    @property
    def is_smooth(self) -> bool:
        """Whether gradients are followed in it: floats, and integers of many levels."""
        return self.is_continuous or (self.is_ordered and self.n_levels > RELAXED_LEVELS)

    def level_of(self, value: Any) -> int:
        """The level of a value; ``ConfigError`` if it is outside the range."""
        level = self.find_level(value)
        if level is None:
            raise self.outside(value)
        return level

    def canonical(self, value: Any) -> Value:
        """The value as the space itself would write it; ``ConfigError`` if it is outside."""
        return self.value_at(self.level_of(value))

    def outside(self, value: Any) -> ConfigError:
        """The error for a value outside the range."""
        return ConfigError(f"{self.name!r} must be {self.range_text()}, got {shorten(value)}")

    # The unit interval

    def to_unit(self, value: Value) -> float:
        """A value of the range as a number in [0, 1]: level / (n_levels - 1)."""
        return self.level_of(value) / max(self.n_levels - 1, 1)

    def from_unit(self, unit: float) -> Value:
        """The value nearest to a number in [0, 1] (inverse of ``to_unit``)."""
        return self.value_at(round(min(max(float(unit), 0.0), 1.0) * (self.n_levels - 1)))

    def snap(self, x: Array) -> Array:
        """Numbers in [0, 1] moved to the nearest level, shape (n,)."""
        top = max(self.n_levels - 1, 1)
        return np.asarray(np.round(x * top) / top)

    @cached_property
    def units(self) -> Array:
        """All levels in [0, 1], shape (n_levels,)."""
        return np.array([self.to_unit(self.value_at(level)) for level in range(self.n_levels)])

    # Values

    def sample(self, rng: Generator) -> Value:
        """One value, uniform over the range (in the logarithm where ``log`` is set)."""
        return self.value_at(int(rng.integers(self.n_levels)))

    def middle(self) -> Value:
        """The default, else the middle of the range."""
        return self.default if self.has_default else self.from_unit(0.5)

    # How packages for flat spaces see it

    @property
    def flat_range(self) -> tuple[float, float, bool]:
        """Smallest and largest number, and whether it is searched in the logarithm."""
        return 0, self.n_levels - 1, False

    def to_flat(self, value: Value) -> int | float:
        """A value as a number of ``flat_range``: its level, or itself where it is a number."""
        return self.level_of(value)

    def from_flat(self, number: float) -> Value:
        """Inverse of ``to_flat``."""
        return self.value_at(int(number))

    # The tree

    @property
    def is_structural(self) -> bool:
        """Whether other parameters depend on this one's value."""
        return bool(self.branches or self.repeated)

    @property
    def children(self) -> tuple[Parameter, ...]:
        """All children, whatever the value."""
        return tuple(p for below in self.branches for p in below.parameters) + self.repeated

    def branch(self, value: Value) -> tuple[Parameter, ...]:
        """The children that exist under ``value``."""
        return self._children.get(value_key(value), ())

    def n_repeats(self, level: int) -> int:
        """How many entries the lists of ``repeated`` have at a level."""
        return int(self.value_at(level))  # type: ignore[arg-type]

    @cached_property
    def n_subspaces(self) -> int:
        """How many sets of structural choices there are from here down."""
        return self.n_before(self.n_levels) if self.is_structural else 1

    def n_before(self, level: int) -> int:
        """How many of the subspaces from here down come before those of a level."""
        levels, extra = self._extra
        return level + extra[bisect_left(levels, level)]

    @cached_property
    def _extra(self) -> tuple[list[int], list[int]]:
        """Levels that have children, and how many subspaces beyond one each those before add."""
        if self.repeated:
            each = math.prod(child.n_subspaces for child in self.repeated)
            counts = {level: each ** self.n_repeats(level) for level in range(self.n_levels)}
        else:
            counts = {
                self.level_of(below.value): math.prod(p.n_subspaces for p in below.parameters)
                for below in self.branches
            }
        levels = sorted(counts)
        return levels, list(accumulate((counts[level] - 1 for level in levels), initial=0))

    @cached_property
    def _children(self) -> dict[tuple[str, Value] | None, tuple[Parameter, ...]]:
        return {value_key(branch.value): branch.parameters for branch in self.branches}
