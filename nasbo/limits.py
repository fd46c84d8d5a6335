"""Constraints on configs such as ``parameters <= 2e6``.

A constraint is on one of the numbers in the trainer's ``summary`` of a config.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from nasbo.errors import SweepError, shorten
from nasbo.space import Config

MAX_DRAWS = 10_000
"""Rejection-sampling budget; beyond it the constraints are reported as infeasible."""
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}
_SAME_NAMES = (("parameters", "params"), ("memory", "memory_bytes"))
_LIMIT = re.compile(r"\s*([A-Za-z_][\w.]*)\s*(<=|>=|<|>)\s*(\S+)\s*")


class Describe(Protocol):
    """Maps a config to its summary, which contains named numbers."""

    def __call__(self, config: Config, /) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Limit:
    """One inequality."""

    name: str
    comparison: str
    bound: float

    def __str__(self) -> str:
        return f"{self.name} {self.comparison} {self.bound:g}"

    def violation(self, numbers: Mapping[str, float]) -> str | None:
        """The broken rule with the value, or ``None`` if the limit is satisfied."""
        value = _find(self.name, numbers)
        if value is None:
            known = ", ".join(numbers) or "none"
            return f"the summary has no number {self.name!r}; known: {known}"
        if _COMPARISONS[self.comparison](value, self.bound):
            return None
        return f"{self} must hold, but got {value:g}"


@dataclass(frozen=True)
class Limits:
    """All limits of a search; a call tests whether a config satisfies them.

    Picklable if ``describe`` is.
    """

    limits: tuple[Limit, ...]
    describe: Describe

    def __call__(self, config: Config) -> bool:
        return self.violation(config) is None

    def __str__(self) -> str:
        return ", ".join(map(str, self.limits))

    def violation(self, config: Config) -> str | None:
        """The first limit that a config breaks, with its value; ``None`` if it satisfies all.

        A config that cannot be described counts as outside.
        """
        try:
            numbers = numbers_of(self.describe(config))
        except Exception as error:
            return f"no summary: {type(error).__name__}: {error}"
        broken = (limit.violation(numbers) for limit in self.limits)
        return next((text for text in broken if text is not None), None)

    def values(self, config: Config) -> list[float | None]:
        """The number for each limit; ``None`` if the summary does not have it."""
        try:
            numbers = numbers_of(self.describe(config))
        except Exception:  # no summary, no numbers: ``violation`` gives the reason
            numbers = {}
        return [_find(limit.name, numbers) for limit in self.limits]


def parse_limits(texts: Sequence[str]) -> tuple[Limit, ...]:
    """Parse constraints such as ``name <= number``.

    Raises:
        SweepError: a text is not a constraint.
    """
    return tuple(_parse(text) for text in texts)


def numbers_of(summary: Mapping[str, Any]) -> dict[str, float]:
    """Numbers of a summary, by name."""
    return {
        str(name): float(value)
        for name, value in summary.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _parse(text: str) -> Limit:
    match = _LIMIT.fullmatch(text) if isinstance(text, str) else None
    try:
        bound = float(match[3]) if match else math.nan
    except ValueError:
        bound = math.nan
    if match is None or math.isnan(bound):
        raise SweepError(f"a constraint must be like 'parameters <= 2e6', got {shorten(text)}")
    return Limit(match[1], match[2], bound)


def _find(name: str, numbers: Mapping[str, float]) -> float | None:
    """A number by its case-insensitive name or a synonym of it."""
    by_name = {known.lower(): value for known, value in numbers.items()}
    wanted = name.lower()
    same = next((names for names in _SAME_NAMES if wanted in names), (wanted,))
    return next((by_name[one] for one in (wanted, *same) if one in by_name), None)
