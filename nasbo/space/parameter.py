"""A parameter with its type and range comes in; its values, plain and in [0, 1], go out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from numpy.random import Generator

from nasbo.errors import ConfigError

Value = str | int | float | bool | None
Config = dict[str, Any]
Kind = Literal["choice", "int", "float", "powerint2"]

KINDS: tuple[Kind, ...] = ("choice", "int", "float", "powerint2")


def same_value(left: Any, right: Any) -> bool:
    """Equality that keeps ``True`` and ``1`` apart but lets ``1`` and ``1.0`` be one value."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if left is None or right is None or isinstance(left, str) or isinstance(right, str):
        return type(left) is type(right) and left == right
    return bool(left == right)


@dataclass(frozen=True)
class Branch:
    """The parameters that exist only while their father has ``value``."""

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
            for level, candidate in enumerate(self.values):
                if same_value(candidate, value):
                    return level
        elif _is_whole(value):
            number = int(value)
            if self.kind == "powerint2":
                is_power = number > 0 and number & (number - 1) == 0
                number = number.bit_length() - 1 if is_power else int(self.low) - 1
            if self.low <= number <= self.high:
                return number - int(self.low)
        raise ConfigError(f"{self.name!r} must be {self.range_text()}, got {value!r}")

    def canonical(self, value: Any) -> Value:
        """The value as the space itself would write it; ``ConfigError`` if it is outside."""
        if self.kind != "float":
            return self.value_at(self.level_of(value))
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not self.low <= value <= self.high:
            raise ConfigError(f"{self.name!r} must be {self.range_text()}, got {value!r}")
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
            return min(int(math.exp(low + rng.random() * (high - low))), int(self.high))
        return self.value_at(int(rng.integers(self.n_levels)))

    def middle(self) -> Value:
        """The default, else the first choice, else the middle of the range."""
        if self.has_default:
            return self.default
        return self.values[0] if self.kind == "choice" else self.from_unit(0.5)

    def range_text(self) -> str:
        """The range in words, for messages and drawings."""
        if self.kind == "choice":
            return "one of " + ", ".join(repr(value) for value in self.values)
        if self.kind == "float":
            return f"a number in [{self.low:g}, {self.high:g}]" + (" (log)" if self.log else "")
        if self.kind == "powerint2":
            return f"a power of two in [{2 ** int(self.low)}, {2 ** int(self.high)}]"
        suffix = " (log)" if self.log else ""
        return f"an integer in [{int(self.low)}, {int(self.high)}]{suffix}"

    def branch(self, value: Value) -> tuple[Parameter, ...]:
        """The children that exist under ``value``."""
        for branch in self.branches:
            if same_value(branch.value, value):
                return branch.parameters
        return ()

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
    return math.isfinite(value) and float(value).is_integer()
