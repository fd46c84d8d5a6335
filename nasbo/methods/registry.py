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

    Args:
        name: a key of ``METHODS``, or ``module:Class`` for a method of one's own.
        space: what it searches.
        seed: of its random numbers.
        options: its own settings.

    Raises:
        NasboError: an unknown name or option; the message lists the known ones.
    """
    if name not in METHODS and ":" not in name:
        raise NasboError(f"unknown method {name!r}; known: {', '.join(sorted(METHODS))}")
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise NasboError(f"seed must be an integer >= 0, got {seed!r}")
    build = _find(METHODS[name].path if name in METHODS else name)
    known = [p for p in inspect.signature(build).parameters if p not in ("space", "seed")]
    if unknown := [option for option in options if option not in known]:
        listed = ", ".join(known) or "none"
        raise NasboError(f"{name!r} has no option {unknown[0]!r}; known: {listed}")
    method: Method = build(space, seed, **options)
    return method


def _find(path: str) -> Any:
    module, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise NasboError(f"no method {path!r}: {error}") from error
