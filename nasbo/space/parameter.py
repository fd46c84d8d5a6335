"""Base class of parameters."""

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
"""Integers with more levels than this are optimised as floats and rounded."""
_WORD = re.compile(r"[^\W\d][\w-]*")


def value_key(value: Any) -> tuple[str, Value] | None:
    """A key that equal values share: ``1`` and ``1.0`` do, ``1`` and ``True`` do not.

    ``None`` for anything but a single plain value.
    """
    if value is None or isinstance(value, bool):
        return "constant", value
    if isinstance(value, str):
        return "text", value
    return ("number", value) if isinstance(value, int | float) else None


def plain_text(value: Any) -> str:
    """A value as text; ambiguous text is quoted."""
    if isinstance(value, list):
        return "[" + " ".join(map(plain_text, value)) + "]"
    if not isinstance(value, str):
        return str(value)
    is_word = _WORD.fullmatch(value) and value not in ("None", "True", "False")
    return value if is_word else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Branch:
    """Parameters that exist only while their parent has ``value``."""

    value: Value
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Parameter(ABC):
    """A parameter of the tree; subclasses in ``nasbo.space.kinds``, one per ``type:`` of a file.

    ``branches`` holds the children by value, ``repeated`` the children that are repeated as
    often as an integer says.

    Attributes:
        kind: its ``type:`` in a file.
        keys: keys of its entry in a file besides those that all kinds have.
        is_ordered: whether neighbouring levels are similar; not so for a choice.
        is_even: whether its levels are equidistant in [0, 1].
    """

    name: str
    default: Value = field(default=None, kw_only=True)
    has_default: bool = field(default=False, kw_only=True)
    branches: tuple[Branch, ...] = field(default=(), kw_only=True)
    repeated: tuple[Parameter, ...] = field(default=(), kw_only=True)

    kind: ClassVar[str]
    keys: ClassVar[tuple[str, ...]] = ()
    is_ordered: ClassVar[bool] = True

    # Defined by each kind

    @classmethod
    @abstractmethod
    def read(cls, name: str, node: Node, own: Mapping[str, Node]) -> Self:
        """Read the parameter from a file's entry; ``SpaceError`` with the line if that is invalid.

        Args:
            name: of the parameter.
            node: its ``range:``.
            own: entries for ``keys``, if given.
        """

    @property
    @abstractmethod
    def n_levels(self) -> int:
        """Number of values; 0 if continuous."""

    @abstractmethod
    def value_at(self, level: int) -> Value:
        """The value of a level, 0 to ``n_levels - 1``."""

    @abstractmethod
    def find_level(self, value: Any) -> int | None:
        """The level of a value; ``None`` if it is outside the range."""

    @abstractmethod
    def range_text(self) -> str:
        """The range as text, for messages and drawings."""

    @abstractmethod
    def range_values(self) -> list[Any]:
        """The range in the form of a file."""

    def own_entries(self) -> dict[str, Any]:
        """Entries for ``keys`` in a file, without defaults."""
        return {}

    @property
    @abstractmethod
    def range_key(self) -> RangeKey:
        """Sortable key of kind and range, without the name."""

    @property
    def is_even(self) -> bool:
        return True

    # Levels

    @property
    def is_continuous(self) -> bool:
        """Whether the parameter is a float."""
        return self.n_levels == 0

    @property
    def is_smooth(self) -> bool:
        """Whether it is optimised by gradients: floats, and integers with many levels."""
        return self.is_continuous or (self.is_ordered and self.n_levels > RELAXED_LEVELS)

    def level_of(self, value: Any) -> int:
        """The level of a value; ``ConfigError`` if it is outside the range."""
        level = self.find_level(value)
        if level is None:
            raise self.outside(value)
        return level

    def canonical(self, value: Any) -> Value:
        """The value in the space's own form; ``ConfigError`` if it is outside the range."""
        return self.value_at(self.level_of(value))

    def outside(self, value: Any) -> ConfigError:
        """The error for a value outside the range."""
        return ConfigError(f"{self.name!r} must be {self.range_text()}, got {shorten(value)}")

    # The unit interval

    def to_unit(self, value: Value) -> float:
        """A value of the range scaled to [0, 1]: level / (n_levels - 1)."""
        return self.level_of(value) / max(self.n_levels - 1, 1)

    def from_unit(self, unit: float) -> Value:
        """The value nearest to a number in [0, 1] (inverse of ``to_unit``)."""
        return self.value_at(round(min(max(float(unit), 0.0), 1.0) * (self.n_levels - 1)))

    def snap(self, x: Array) -> Array:
        """Round numbers in [0, 1] to the nearest level, shape (n,)."""
        top = max(self.n_levels - 1, 1)
        return np.asarray(np.round(x * top) / top)

    @cached_property
    def units(self) -> Array:
        """All levels in [0, 1], shape (n_levels,)."""
        return np.array([self.to_unit(self.value_at(level)) for level in range(self.n_levels)])

    # Values

    def sample(self, rng: Generator) -> Value:
        """A random value, uniform over the range (on a log scale if ``log``)."""
        return self.value_at(int(rng.integers(self.n_levels)))

    def middle(self) -> Value:
        """The default, else the middle of the range."""
        return self.default if self.has_default else self.from_unit(0.5)

    # For packages with flat spaces

    @property
    def flat_range(self) -> tuple[float, float, bool]:
        """Smallest and largest number, and whether it is on a log scale."""
        return 0, self.n_levels - 1, False

    def to_flat(self, value: Value) -> int | float:
        """A value as a number of ``flat_range``: its level, or the number itself."""
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
        """All children, for any value."""
        return tuple(p for below in self.branches for p in below.parameters) + self.repeated

    def branch(self, value: Value) -> tuple[Parameter, ...]:
        """The children that exist under ``value``."""
        return self._children.get(value_key(value), ())

    def n_repeats(self, level: int) -> int:
        """Length of the lists of ``repeated`` at a level."""
        return int(self.value_at(level))  # type: ignore[arg-type]

    @cached_property
    def n_subspaces(self) -> int:
        """Number of subspaces of this parameter and everything below it."""
        return self.n_before(self.n_levels) if self.is_structural else 1

    def n_before(self, level: int) -> int:
        """Number of those subspaces that precede the ones of a level."""
        levels, extra = self._extra
        return level + extra[bisect_left(levels, level)]

    @cached_property
    def _extra(self) -> tuple[list[int], list[int]]:
        """Levels that have children, and the cumulative number of
        additional subspaces before each.
        """
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
