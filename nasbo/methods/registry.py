"""A method's name and options come in, the method goes out; modules are imported when asked for."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from typing import Any

from nasbo.errors import NasboError
from nasbo.methods.base import Method
from nasbo.space import Space


@dataclass(frozen=True)
class Entry:
    """Where a method lives and what it is, in one line."""

    path: str
    summary: str


METHODS: dict[str, Entry] = {
    "attnbo": Entry(
        "nasbo.methods.attnbo:AttnBO",
        "one attention deep-kernel GP over all subspaces, log-EI in each of them",
    ),
    "random": Entry(
        "nasbo.methods.random:RandomSearch", "uniform over the subspaces, then uniform inside"
    ),
}


def make_method(name: str, space: Space, seed: int = 0, **options: Any) -> Method:
    """Build a method.

    Raises:
        NasboError: an unknown name or option; the message lists the known ones.
    """
    if name not in METHODS:
        raise NasboError(f"unknown method {name!r}; known: {', '.join(sorted(METHODS))}")
    module, _, attribute = METHODS[name].path.partition(":")
    build = getattr(importlib.import_module(module), attribute)
    known = [p for p in inspect.signature(build).parameters if p not in ("space", "seed")]
    if unknown := [option for option in options if option not in known]:
        listed = ", ".join(known) or "none"
        raise NasboError(f"{name!r} has no option {unknown[0]!r}; known: {listed}")
    method: Method = build(space, seed, **options)
    return method
