"""The errors that nasbo raises on purpose: a message has the rule, the value and its position."""

from __future__ import annotations

from typing import Any


class NasboError(Exception):
    """Base of all errors that a user can cause and mend.

    Attributes:
        exit_code: of a command that ends with it.
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
    """A Ray that cannot be reached or started: no fault of the sweep, which can be resumed."""

    exit_code = 3


def shorten(value: Any, size: int = 60) -> str:
    """A value's repr, cut for a message."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print integers of more than a few thousand digits
        text = f"a {type(value).__name__} too long to print"
    return text if len(text) <= size else text[: size - 3] + "..."
