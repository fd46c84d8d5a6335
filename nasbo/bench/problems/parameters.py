"""Shorthands for the parameters of space documents."""

from __future__ import annotations

from typing import Any

Document = dict[Any, Any]


def real(low: float, high: float, log: bool = False) -> Document:
    """A float in [low, high]."""
    return {"type": "float", "range": [low, high], "log": log}


def integer(low: int, high: int) -> Document:
    """An int in [low, high], both included."""
    return {"type": "int", "range": [low, high + 1]}


def ordinal(*values: Any) -> Document:
    """One of the values, in an order in which neighbours are alike."""
    return {"type": "ordinal", "range": list(values)}


def choice(*values: Any, branches: Document | None = None) -> Document:
    """One of the values; `branches` holds the parameters that exist under a value."""
    plain: Document = {"type": "choice", "range": list(values)}
    return plain | ({"submodule": branches} if branches else {})
