"""Kinds of parameters, one class per ``type:`` of a space file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator

from nasbo.space.document import Node
from nasbo.space.parameter import Array, Parameter, RangeKey, Value, value_key
from nasbo.space.ranges import read_integers, read_reals, read_switch, read_values

_MAX_SHOWN = 50


@dataclass(frozen=True)
class Listed(Parameter):
    """Parameter with explicitly listed values."""

    values: tuple[Value, ...] = ()

    @classmethod
    def read(cls, name: str, node: Node, own: Mapping[str, Node]) -> Self:
        return cls(name, values=read_values(name, node))

    @property
    def n_levels(self) -> int:
        return len(self.values)

    def value_at(self, level: int) -> Value:
        return self.values[level]

    def find_level(self, value: Any) -> int | None:
        return self._levels.get(value_key(value))

    def range_text(self) -> str:
        shown = ", ".join(repr(value) for value in self.values[:_MAX_SHOWN])
        return f"one of {shown}" + (", ..." if len(self.values) > _MAX_SHOWN else "")

    def range_values(self) -> list[Any]:
        return list(self.values)

    @property
    def range_key(self) -> RangeKey:
        return self.kind, 0, 0, False, repr(self.values)

    @cached_property
    def _levels(self) -> dict[tuple[str, Value] | None, int]:
        return {value_key(value): level for level, value in enumerate(self.values)}


class Choice(Listed):
    """Categorical parameter: values without order."""

    kind = "choice"
    is_ordered = False

    def middle(self) -> Value:
        """The default, else the first value."""
        return self.default if self.has_default else self.values[0]


class Ordinal(Listed):
    """Ordinal parameter: ordered values that are not numbers, such as small, medium, large."""

    kind = "ordinal"

    def range_text(self) -> str:
        return f"{super().range_text()} (in this order)"


@dataclass(frozen=True)
class Number(Parameter):
    """Number in a range that includes both ends; on a log scale if ``log``."""

    low: float = 0
    high: float = 0
    log: bool = False

    keys: ClassVar[tuple[str, ...]] = ("log",)

    def own_entries(self) -> dict[str, Any]:
        return {"log": True} if self.log else {}

    def to_unit(self, value: Value) -> float:
        """A value scaled to [0, 1], by its logarithm if ``log``."""
        scale = math.log if self.log else float
        low, high, number = (scale(float(end)) for end in (self.low, self.high, value))  # type: ignore[arg-type]
        return min(max((number - low) / (high - low), 0.0), 1.0) if high > low else 0.0

    def number_at(self, unit: float) -> float:
        """Inverse of ``to_unit`` for a continuous range."""
        unit = min(max(float(unit), 0.0), 1.0)
        low, high = float(self.low), float(self.high)
        if self.log:
            number = math.exp(math.log(low) + unit * (math.log(high) - math.log(low)))
        else:
            number = low * (1.0 - unit) + high * unit
        return min(max(number, low), high)

    @property
    def range_key(self) -> RangeKey:
        return self.kind, self.low, self.high, self.log, "()"

    @property
    def flat_range(self) -> tuple[float, float, bool]:
        return self.low, self.high, self.log

    def to_flat(self, value: Value) -> int | float:
        return value  # type: ignore[return-value]


class Real(Number):
    """Floating-point number of the range."""

    kind = "float"

    @classmethod
    def read(cls, name: str, node: Node, own: Mapping[str, Node]) -> Self:
        log = read_switch(name, "log", own)
        return cls(name, *read_reals(name, node, log), log)

    @property
    def n_levels(self) -> int:
        return 0

    def value_at(self, level: int) -> Value:
        raise TypeError(f"{self.name!r} has no levels: it is {self.range_text()}")

    def find_level(self, value: Any) -> int | None:
        raise TypeError(f"{self.name!r} has no levels: it is {self.range_text()}")

    def canonical(self, value: Any) -> Value:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not self.low <= value <= self.high:
            raise self.outside(value)
        return float(value)

    def from_unit(self, unit: float) -> Value:
        return self.number_at(unit)

    def snap(self, x: Array) -> Array:
        return x

    def sample(self, rng: Generator) -> Value:
        return self.from_unit(rng.random())

    def range_text(self) -> str:
        return f"a number in [{self.low:g}, {self.high:g}]" + (" (log)" if self.log else "")

    def range_values(self) -> list[Any]:
        return [self.low, self.high]

    def from_flat(self, number: float) -> Value:
        return min(max(float(number), self.low), self.high)


class Integer(Number):
    """Integer of the range (files write the range right-open)."""

    kind = "int"

    @classmethod
    def read(cls, name: str, node: Node, own: Mapping[str, Node]) -> Self:
        log = read_switch(name, "log", own)
        return cls(name, *read_integers(name, node, log), log)

    @property
    def n_levels(self) -> int:
        return int(self.high) - int(self.low) + 1

    @property
    def is_even(self) -> bool:
        return not self.log

    def value_at(self, level: int) -> Value:
        return int(self.low) + level

    def find_level(self, value: Any) -> int | None:
        number = _whole(value)
        if number is None or not self.low <= number <= self.high:
            return None
        return number - int(self.low)

    def from_unit(self, unit: float) -> Value:
        return round(self.number_at(unit))

    def snap(self, x: Array) -> Array:
        if not self.log:
            return super().snap(x)
        low, high = np.log(self.low), np.log(self.high)
        if high <= low:
            return np.zeros_like(x)
        number = np.clip(np.round(np.exp(low + x * (high - low))), self.low, self.high)
        return np.asarray((np.log(number) - low) / (high - low))

    def sample(self, rng: Generator) -> Value:
        if not self.log:
            return super().sample(rng)
        low, high = math.log(self.low), math.log(self.high + 1)
        number = int(math.exp(low + rng.random() * (high - low)))
        return min(max(number, int(self.low)), int(self.high))

    def range_text(self) -> str:
        suffix = " (log)" if self.log else ""
        return f"an integer in [{int(self.low)}, {int(self.high)}]{suffix}"

    def range_values(self) -> list[Any]:
        return [self.low, self.high + 1]

    def from_flat(self, number: float) -> Value:
        return int(number)


@dataclass(frozen=True)
class PowerOfTwo(Parameter):
    """Power of two; ``low`` and ``high`` are exponents, both included."""

    low: int = 0
    high: int = 0

    kind: ClassVar[str] = "powerint2"

    @classmethod
    def read(cls, name: str, node: Node, own: Mapping[str, Node]) -> Self:
        low, high = read_integers(name, node)
        if low < 0 or high >= 54:
            ends = f"{low}...{high + 1}"
            raise node.error(f"exponents of {name!r} must be in 0...54, but got {ends}")
        return cls(name, low, high)

    @property
    def n_levels(self) -> int:
        return self.high - self.low + 1

    def value_at(self, level: int) -> Value:
        return int(2 ** (self.low + level))

    def find_level(self, value: Any) -> int | None:
        number = _whole(value)
        if number is None or number <= 0 or number & (number - 1):
            return None
        exponent = number.bit_length() - 1
        return exponent - self.low if self.low <= exponent <= self.high else None

    def range_text(self) -> str:
        return f"a power of two in [{2**self.low}, {2**self.high}]"

    def range_values(self) -> list[Any]:
        return [self.low, self.high + 1]

    @property
    def range_key(self) -> RangeKey:
        return self.kind, self.low, self.high, False, "()"


KINDS: dict[str, type[Parameter]] = {
    one.kind: one for one in (Choice, Integer, Real, PowerOfTwo, Ordinal)
}
"""Parameter classes by ``type:``."""


def _whole(value: Any) -> int | None:
    """A value as an integer; ``None`` if it is not integral."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if isinstance(value, int) or value.is_integer() else None
