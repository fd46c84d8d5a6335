"""Names of other packages as nasbo takes them."""

from __future__ import annotations

from collections.abc import Iterable

JOINT = ":"
"""In place of "." and "/", which names of nasbo cannot have."""


def inner_names(outer: Iterable[str]) -> dict[str, str]:
    """The name in nasbo by the name elsewhere; two names stay two."""
    given = list(outer)
    found: dict[str, str] = {}
    for name in given:
        inner = name.replace("/", JOINT).replace(".", JOINT)
        inner = inner if inner.strip() else "_"
        while inner != name and (inner in given or inner in found.values()):
            inner += "'"
        found[name] = inner
    return found
