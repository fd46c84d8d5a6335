"""Parsing of parameter ranges and switches in a space file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from nasbo.errors import shorten
from nasbo.space.document import MAX_NUMBER, Node

MAX_CHOICES = 10_000
_BOUNDS = re.compile(r"^\s*(.+?)\s*\.\.\.\s*(.+?)\s*$", re.DOTALL)
Value = str | int | float | bool | None


def read_values(name: str, node: Node) -> tuple[Value, ...]:
    """Listed values: ``{a, b}`` (a mapping without values), or a list."""
    if node.is_mapping:
        if filled := [child for _, child in node.pairs() if child.value is not None]:
            raise filled[0].error(f"the range of {name!r} must be {{a, b}} or [a, b], not a: b")
        items = [key for key, _ in node.pairs()]
    elif node.is_list:
        items = node.value
    else:
        raise node.error(f"the range of {name!r} must be {{a, b}}, got {shorten(node.plain())}")
    if not items:
        raise node.error(f"the range of {name!r} is empty")
    if len(items) > MAX_CHOICES:
        raise node.error(f"a choice may have {MAX_CHOICES} values, {name!r} has {len(items)}")
    return _distinct(name, items)


def _distinct(name: str, items: list[Node]) -> tuple[Value, ...]:
    values: dict[Value, Value] = {}  # also refuses 1 beside True: no dict could hold both as keys
    for item in items:
        if not item.is_scalar:
            raise item.error(f"a value of {name!r} must be single, got {shorten(item.plain())}")
        if isinstance(item.value, str) and _BOUNDS.match(item.value):
            raise item.error(f"{name!r} is a choice: list its values, got {shorten(item.value)}")
        if item.value in values:
            raise item.error(f"{item.value!r} stands twice in the range of {name!r}")
        values[item.value] = item.value
    return tuple(values.values())


def read_reals(name: str, node: Node, log: bool = False) -> tuple[float, float]:
    """Both ends of a range of floats, which are included."""
    low, high = (_number(name, float, end, node) for end in _ends(name, node))
    if not low < high:
        raise node.error(f"low < high must hold for {name!r}, but got {low:g}...{high:g}")
    _check_log(name, node, low, log)
    return low, high


def read_integers(name: str, node: Node, log: bool = False) -> tuple[int, int]:
    """Both ends of a range of integers, included; files write the right end exclusively."""
    low, high = (int(_number(name, _integer, end, node)) for end in _ends(name, node))
    if not low < high:
        rule = "low < high must hold (the right end is outside)"
        raise node.error(f"{rule} for {name!r}, but got {low}...{high}")
    _check_log(name, node, low, log)
    return low, high - 1


def read_switch(name: str, key: str, entries: Mapping[str, Node]) -> bool:
    """A boolean entry; false if the key is missing."""
    if key not in entries:
        return False
    node = entries[key]
    if not isinstance(node.value, bool):
        raise node.error(f"{key!r} of {name!r} must be true or false, got {shorten(node.plain())}")
    return node.value


def _check_log(name: str, node: Node, low: float, log: bool) -> None:
    if log and low <= 0:
        raise node.error(f"0 < low must hold for the log range of {name!r}, but got {low:g}")


def _ends(name: str, node: Node) -> list[Any]:
    if node.is_list and all(item.is_scalar for item in node.value):
        ends = [item.value for item in node.value]
        if len(ends) == 2:
            return ends
        if len(ends) == 1 and isinstance(ends[0], str) and (match := _BOUNDS.match(ends[0])):
            return list(match.groups())
    elif node.is_scalar and isinstance(node.value, str) and (match := _BOUNDS.match(node.value)):
        return list(match.groups())
    raise node.error(f"the range of {name!r} must be [low...high], got {shorten(node.plain())}")


def _number(name: str, convert: Callable[[Any], float], end: Any, node: Node) -> float:
    try:
        if isinstance(end, bool) or end is None:
            raise ValueError
        number = convert(end)
    except (ValueError, OverflowError) as error:
        what = "a number" if convert is float else "an integer"
        raise node.error(f"{what} is needed for {name!r}, got {shorten(end)}") from error
    if not abs(number) <= MAX_NUMBER:
        raise node.error(f"numbers must lie within ±2^53, got {shorten(end)} for {name!r}")
    return number


def _integer(end: Any) -> int:
    if isinstance(end, float) and end.is_integer():
        return int(end)
    if isinstance(end, float):
        raise ValueError(end)
    return int(end)
