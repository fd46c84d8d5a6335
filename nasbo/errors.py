"""Exceptions that nasbo raises on purpose; a message has the rule, the value and its location."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class NasboError(Exception):
    """Base class of errors that users can cause and fix.

    Attributes:
        exit_code: exit code of a command that ends with it.
    """

    exit_code = 2


class SpaceError(NasboError):
    """A search space that cannot be read: the message starts with ``file:line``."""


class ConfigError(NasboError):
    """A config that does not belong to its space."""


class JournalError(NasboError):
    """A journal that cannot be read or written."""


class SweepError(NasboError):
    """A sweep whose settings, folder or trainer cannot be used."""


class ClusterError(SweepError):
    """A Ray cluster that cannot be reached or started: the sweep is intact and can be resumed."""

    exit_code = 3


def nearest(name: Any, known: Iterable[str]) -> str:
    """A suggestion for a mistyped name, to follow it in a message; "" if none is near."""
    found = difflib.get_close_matches(str(name), list(known), 1)
    return f" (did you mean {found[0]!r}?)" if found else ""


def shorten(value: Any, size: int = 60) -> str:
    """A value's repr, shortened for a message."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print integers with thousands of digits
        text = f"a {type(value).__name__} too long to print"
    return text if len(text) <= size else text[: size - 3] + "..."
