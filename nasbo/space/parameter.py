"""A parameter with its type and range comes in; its values, plain and in [0, 1], go out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from numpy.random import Generator

from nasbo.errors import ConfigError, shorten

Value = str | int | float | bool | None
Config = dict[str, Any]
Kind = Literal["choice", "int", "float", "powerint2"]

_MAX_SHOWN = 50
KINDS: tuple[Kind, ...] = ("choice", "int", "float", "powerint2")


def value_key(value: Any) -> tuple[str, Value] | None:
    """What two equal values share: ``1`` and ``1.0`` do, ``1`` and ``True`` do not.

    ``None`` for what is no single plain value.
    """
    if value is None or isinstance(value, bool):
        return "constant", value
    if isinstance(value, str):
        return "text", value
    return ("number", value) if isinstance(value, int | float) else None


@dataclass(frozen=True)
class Branch:
    """The parameters that exist only while their parent has ``value``."""

    value: Value
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Parameter:
    """A parameter of the tree.

    ``low`` and ``high`` are both inside the range (the files write integer ranges right-open);
    for ``powerint2`` they are exponents. ``branches`` holds the children by value, ``repeated``
    the children that come once per count of an int.
    """

    name: str
    kind: Kind
    values: tuple[Value, ...] = ()
    low: float = 0
    high: float = 0
    log: bool = False
    default: Value = None
    has_default: bool = False
    branches: tuple[Branch, ...] = ()
    repeated: tuple[Parameter, ...] = ()

    @property
    def is_structural(self) -> bool:
        """Whether other parameters depend on this one's value."""
        return bool(self.branches or self.repeated)

    @property
    def is_number(self) -> bool:
        return self.kind != "choice"

    @property
    def n_levels(self) -> int:
        """How many values there are; 0 for a float."""
        if self.kind == "choice":
            return len(self.values)
        return 0 if self.kind == "float" else int(self.high) - int(self.low) + 1

    def value_at(self, level: int) -> Value:
        """The value of a discrete parameter by its place in the range."""
        if self.kind == "choice":
            return self.values[level]
        number = int(self.low) + level
        return 2**number if self.kind == "powerint2" else number

    def level_of(self, value: Any) -> int:
        """The place of a discrete value in the range; ``ConfigError`` if it is not in it."""
        if self.kind == "choice":
            level = self._levels.get(value_key(value))
            if level is not None:
                return level
        elif _is_whole(value):
            number = int(value)
            if self.kind == "powerint2":
                is_power = number > 0 and number & (number - 1) == 0
                number = number.bit_length() - 1 if is_power else int(self.low) - 1
            if self.low <= number <= self.high:
                return number - int(self.low)
        raise self._outside(value)

    def canonical(self, value: Any) -> Value:
        """The value as the space itself would write it; ``ConfigError`` if it is outside."""
        if self.kind != "float":
            return self.value_at(self.level_of(value))
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not self.low <= value <= self.high:
            raise self._outside(value)
        return float(value)

    def to_unit(self, value: Value) -> float:
        """A value of the range as a number in [0, 1]; a choice as index / (k - 1)."""
        if self.kind == "int" or self.kind == "float":
            return self._scale(float(value), _log if self.log else _identity)  # type: ignore[arg-type]
        return self.level_of(value) / max(self.n_levels - 1, 1)

    def from_unit(self, unit: float) -> Value:
        """The value nearest to a number in [0, 1] (inverse of ``to_unit``)."""
        unit = min(max(float(unit), 0.0), 1.0)
        if self.kind not in ("int", "float"):
            return self.value_at(round(unit * (self.n_levels - 1)))
        low, high = float(self.low), float(self.high)
        if self.log:
            number = math.exp(math.log(low) + unit * (math.log(high) - math.log(low)))
        else:
            number = low * (1.0 - unit) + high * unit
        number = min(max(number, low), high)
        return round(number) if self.kind == "int" else number

    def sample(self, rng: Generator) -> Value:
        """One value, uniform over the range (in the logarithm where ``log`` is set)."""
        if self.kind == "float":
            return self.from_unit(rng.random())
        if self.kind == "int" and self.log:
            low, high = math.log(self.low), math.log(self.high + 1)
            number = int(math.exp(low + rng.random() * (high - low)))
            return min(max(number, int(self.low)), int(self.high))
        return self.value_at(int(rng.integers(self.n_levels)))

    def middle(self) -> Value:
        """The default, else the first choice, else the middle of the range."""
        if self.has_default:
            return self.default
        return self.values[0] if self.kind == "choice" else self.from_unit(0.5)

    def range_text(self) -> str:
        """The range in words, for messages and drawings."""
        if self.kind == "choice":
            shown = ", ".join(repr(value) for value in self.values[:_MAX_SHOWN])
            return f"one of {shown}" + (", ..." if len(self.values) > _MAX_SHOWN else "")
        if self.kind == "float":
            return f"a number in [{self.low:g}, {self.high:g}]" + (" (log)" if self.log else "")
        if self.kind == "powerint2":
            return f"a power of two in [{2 ** int(self.low)}, {2 ** int(self.high)}]"
        suffix = " (log)" if self.log else ""
        return f"an integer in [{int(self.low)}, {int(self.high)}]{suffix}"

    def branch(self, value: Value) -> tuple[Parameter, ...]:
        """The children that exist under ``value``."""
        return self._children.get(value_key(value), ())

    @cached_property
    def n_subspaces(self) -> int:
        """How many sets of structural choices there are from here down."""
        if not self.is_structural:
            return 1
        n_bare = self.n_levels - len(self.level_counts)
        return n_bare + sum(count for _, count in self.level_counts)

    @cached_property
    def level_counts(self) -> tuple[tuple[int, int], ...]:
        """(level, subspaces below it) for the levels that have children, in order."""
        if self.repeated:
            each, low = math.prod(child.n_subspaces for child in self.repeated), int(self.low)
            return tuple((level, each ** (low + level)) for level in range(self.n_levels))
        pairs = (
            (self.level_of(below.value), math.prod(p.n_subspaces for p in below.parameters))
            for below in self.branches
        )
        return tuple(sorted(pairs))

    @cached_property
    def _levels(self) -> dict[tuple[str, Value] | None, int]:
        return {value_key(value): level for level, value in enumerate(self.values)}

    @cached_property
    def _children(self) -> dict[tuple[str, Value] | None, tuple[Parameter, ...]]:
        return {value_key(branch.value): branch.parameters for branch in self.branches}

    def _outside(self, value: Any) -> ConfigError:
        rule = f"{self.name!r} must be {self.range_text()}"
        return ConfigError(f"{rule}, got {shorten(value)}")

    def _scale(self, number: float, scale: Any) -> float:
        low, high = scale(float(self.low)), scale(float(self.high))
        return min(max((scale(number) - low) / (high - low), 0.0), 1.0) if high > low else 0.0


def _identity(number: float) -> float:
    return number


def _log(number: float) -> float:
    return math.log(number)


def _is_whole(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or value.is_integer()
