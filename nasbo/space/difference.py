"""First difference between two search spaces, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nasbo.errors import shorten


def first_difference(before: Any, now: Any, path: str = "") -> str | None:
    """First difference of two spaces as plain values (``Space.to_dict``);
    ``None`` if they are equal.

    Keys are compared as text, because JSON journals store them so.
    """
    if not isinstance(before, Mapping) or not isinstance(now, Mapping):
        if before == now:
            return None
        return f"{path or 'it'} was {shorten(before)}, now it is {shorten(now)}"
    old, new = ({str(key): value for key, value in tree.items()} for tree in (before, now))
    for name in dict.fromkeys((*old, *new)):
        inner = f"{path}.{name}" if path else name
        if name not in new:
            return f"{inner} is gone"
        if name not in old:
            return f"{inner} is new"
        if found := first_difference(old[name], new[name], inner):
            return found
    if list(old) != list(new):
        return f"the order of {', '.join(old)} was another: now {', '.join(new)}"
    return None
