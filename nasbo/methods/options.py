"""Validation of method options."""

from __future__ import annotations

from nasbo.errors import NasboError


def check_choice(option: str, value: object, known: tuple[str, ...]) -> None:
    """Raise unless the value is one of the known ones."""
    if value not in known:
        raise NasboError(f"{option} must be one of {', '.join(known)}, got {value!r}")


def check_count(option: str, value: object) -> None:
    """Raise unless the value is an integer of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise NasboError(f"{option} must be an integer >= 1, got {value!r}")


def check_switch(option: str, value: object) -> None:
    """Raise unless the value is true or false."""
    if not isinstance(value, bool):
        raise NasboError(f"{option} must be true or false, got {value!r}")
