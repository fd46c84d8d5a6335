"""Parsing of command-line arguments: pairs, durations, rungs and slots."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from nasbo.errors import SweepError
from nasbo.space.plain_yaml import UNREADABLE, read_yaml


def split_pairs(pairs: Sequence[str]) -> dict[str, str]:
    """Parse ``key=value`` arguments to a dict of texts."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise SweepError(f"an option must be key=value, got {pair!r}")
        found[key] = value
    return found


def parse_pairs(pairs: Sequence[str]) -> dict[str, Any]:
    """Parse ``key=value`` arguments to a dict, with values in YAML."""
    parsed = {}
    for key, value in split_pairs(pairs).items():
        try:
            parsed[key] = read_yaml(value)
        except UNREADABLE as error:
            raise SweepError(f"the value of {key!r} cannot be read: {value!r}") from error
    return parsed


def parse_duration(text: str) -> float:
    """Parse ``90s``, ``30m``, ``12h`` or plain seconds."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhd]?)\s*", str(text))
    if not match:
        raise SweepError(f"a time must be like 90s, 30m or 12h, got {text!r}")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]


def parse_names(text: str) -> list[str] | str:
    """``auto``, ``none``, or names separated by commas."""
    if text in ("auto", "none"):
        return text
    return [word.strip() for word in text.split(",") if word.strip()]


def parse_rungs(text: str) -> list[int] | str:
    """Parse ``auto``, ``off``, or steps such as ``4,11,33,100``."""
    if text in ("auto", "off"):
        return text
    try:
        return [int(word) for word in text.split(",")]
    except ValueError as error:
        raise SweepError(f"rungs must be auto, off or steps as 4,11,33, got {text!r}") from error


def parse_slots(text: str) -> int | str:
    """Parse ``auto`` or a number."""
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError as error:
        raise SweepError(f"slots must be a number or auto, got {text!r}") from error
