"""Axes of figures: scales, ticks, grids and titles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from nasbo.report.drawing import Line, Shape, Words

_OUTLIER = 4.0
"""Values worse than this many quartile distances are drawn at the edge of the axis."""


@dataclass(frozen=True)
class Scale:
    """Map from numbers to pixels; numbers outside of the limits are drawn at the edge."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        low, high, value = self._inner(self.low), self._inner(self.high), self._inner(value)
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def _inner(self, value: float) -> float:
        return math.log10(max(value, 1e-300)) if self.is_log else value

    def ticks(self, n: int = 5) -> list[float]:
        """About ``n`` round numbers inside the limits."""
        if self.is_log:
            found = _log_ticks(self.low, self.high)
            if len(found) >= 2:
                return found[:: max(1, round(len(found) / (n + 1)))]
        return _round_ticks(self.low, self.high, n)


def _round_ticks(low: float, high: float, n: int) -> list[float]:
    span = high - low
    if span <= 0 or not math.isfinite(span):
        return [low]
    power = 10.0 ** math.floor(math.log10(span / n))
    step = next(power * factor for factor in (1, 2, 5, 10, 20) if span / (power * factor) <= n)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1,) if len(powers) > 3 else (1, 2, 5)
    marks = (factor * 10.0**power for power in powers for factor in factors)
    return [mark for mark in marks if low * 0.999 <= mark <= high * 1.001]


def is_finite(value: object) -> TypeGuard[float]:
    """Whether a value can be drawn: the journal has null for non-finite numbers."""
    return isinstance(value, int | float) and math.isfinite(value)


def limits(values: Iterable[float], margin: float = 0.05) -> tuple[float, float]:
    """Smallest and largest value with a margin; never equal."""
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    room = (high - low) * margin or abs(high) * margin or 0.5
    return low - room, high + room


def log_limits(values: Iterable[float]) -> tuple[float, float]:
    """Limits of positive values for a logarithmic scale."""
    known = [value for value in values if value > 0 and math.isfinite(value)]
    low, high = (min(known), max(known)) if known else (1.0, 10.0)
    room = max((high / low) ** 0.05, 1.08)
    return low / room, high * room


def value_limits(values: Sequence[float], mode: str) -> tuple[float, float]:
    """Limits of an axis of values, in which outliers do not compress the good values."""
    known = sorted(value for value in values if math.isfinite(value))
    if len(known) < 8:
        return limits(known)
    quarter, half, three = (known[len(known) * part // 4] for part in (1, 2, 3))
    reach = _OUTLIER * max(three - quarter, 1e-12 * abs(half))
    if mode == "min":
        return limits([known[0], min(known[-1], max(three, half) + reach)])
    return limits([max(known[0], min(quarter, half) - reach), known[-1]])


def beyond_text(values: Sequence[float], ends: tuple[float, float]) -> str:
    """A sentence about values beyond an axis; "" if there are none."""
    n = sum(math.isfinite(value) and not ends[0] <= value <= ends[1] for value in values)
    words = "value lies beyond the axis and is" if n == 1 else "values lie beyond the axis and are"
    return f" {n:,} worse {words} drawn at its end." if n else ""


@dataclass(frozen=True)
class Frame:
    """The two scales of a figure with their titles."""

    x: Scale
    y: Scale
    x_title: str = ""
    y_title: str = ""

    def shapes(self, has_x_ticks: bool = True, has_y_ticks: bool = True) -> list[Shape]:
        """Grid, tick labels and titles."""
        shapes: list[Shape] = []
        if has_y_ticks:
            shapes += self._y_ticks()
        if has_x_ticks:
            shapes += self._x_ticks()
        bottom = self.y.start
        shapes.append(Line([(self.x.start, bottom), (self.x.end, bottom)], "axis"))
        middle = (self.x.start + self.x.end) / 2
        if self.x_title:
            shapes.append(Words(middle, bottom + 38, self.x_title, anchor="middle"))
        if self.y_title:
            shapes.append(Words(self.x.start - 6, self.y.end - 12, self.y_title, anchor="start"))
        return shapes

    def _y_ticks(self) -> list[Shape]:
        shapes: list[Shape] = []
        for tick, words in zip(self.y.ticks(), tick_texts(self.y.ticks()), strict=True):
            level = self.y(tick)
            shapes.append(Line([(self.x.start, level), (self.x.end, level)], "grid"))
            shapes.append(Words(self.x.start - 8, level + 4, words, 11, "muted", "end"))
        return shapes

    def _x_ticks(self) -> list[Shape]:
        shapes: list[Shape] = []
        for tick, words in zip(self.x.ticks(6), tick_texts(self.x.ticks(6)), strict=True):
            position = self.x(tick)
            shapes.append(Line([(position, self.y.start), (position, self.y.start + 4)], "axis"))
            shapes.append(Words(position, self.y.start + 18, words, 11, "muted", "middle"))
        return shapes


def step_points(
    curve: Sequence[tuple[float, float]], x: Scale, y: Scale
) -> list[tuple[float, float]]:
    """A curve as steps: its corners and its two ends.

    NaN values before the first result are left out.

    Args:
        curve: (position, value) pairs.
        x: scale of the positions.
        y: scale of the values.
    """
    points: list[tuple[float, float]] = []
    for index, (place, value) in enumerate(curve):
        is_news = not points or index + 1 == len(curve) or value != curve[index - 1][1]
        if math.isnan(value) or not is_news:
            continue
        if points:
            points.append((x(place), points[-1][1]))
        if not points or y(value) != points[-1][1]:
            points.append((x(place), y(value)))
    return points


def tick_texts(ticks: Sequence[float]) -> list[str]:
    """Tick labels."""
    return [number_text(tick) for tick in ticks]


def number_text(value: float, digits: int = 4) -> str:
    """A number as short text: 1.2M, 0.4512, 3e-05."""
    size = abs(value)
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= limit:
            scale = 1e3 if unit == "k" else limit
            return f"{value / scale:.3g}{unit}" if size < 1e15 else f"{value:.3g}"
    if size < 1e-12:
        return "0"
    return f"{value:.{digits}g}"
