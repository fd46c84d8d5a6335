"""Kinds of settings: validation of values, and their form on the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from nasbo.sweeps.parsing import parse_duration, parse_names, parse_pairs, parse_rungs, parse_slots

MAX_TIMEOUT_S = 31_536_000
"""One year: Python's timers overflow at larger values."""


@dataclass(frozen=True)
class Rule:
    """A validation rule: its message, with ``{name}`` and ``{value!r}``, and its predicate."""

    words: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class Kind:
    """Kind of a setting's values.

    Attributes:
        rules: rules for values; the error has the first one that is broken.
        word: type of the command-line argument; a tuple lists the allowed words.
        least: minimum that the command line itself enforces.
        metavar: placeholder of the argument in the help.
        parse: converts an argument, or all arguments of a repeatable flag, to a value.
        joins: how values of a sweep file and the command line are merged: by ``keys`` or as
            ``items``; else the command line's replaces the file's.
    """

    rules: tuple[Rule, ...]
    word: type | tuple[str, ...] = str
    least: int | None = None
    metavar: str | None = None
    parse: Callable[[Any], Any] = lambda value: value
    joins: Literal["", "keys", "items"] = ""


def is_count(value: Any, least: int = 1) -> bool:
    """Whether a value is an integer of at least ``least``."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    is_real = isinstance(value, int | float) and not isinstance(value, bool)
    return is_real and abs(value) <= sys.float_info.max


def is_positive(value: Any) -> bool:
    """Whether a value is a finite number above 0."""
    return is_number(value) and value > 0


def _has_text_keys(options: Any) -> bool:
    return all(isinstance(name, str) for name in options)


def count(least: int, is_told: bool = False) -> Kind:
    """Integers from ``least`` on; ``is_told``: shown and enforced by the command line."""
    words = f"{{name}} >= {least} must hold, but got {{value!r}}"
    rule = Rule(words, lambda value: is_count(value, least))
    return Kind((rule,), int, least if is_told else None)


def choice(*words: str) -> Kind:
    """One of several words."""
    told = f"{{name}} must be {' or '.join(words)}, got {{value!r}}"
    return Kind((Rule(told, lambda value: value in words),), words)


def pairs(*rules: Rule, metavar: str = "K=V") -> Kind:
    """A mapping, given as ``key=value`` arguments."""
    return Kind(rules, metavar=metavar, parse=parse_pairs, joins="keys")


_TEXT = Rule("{name} must be text, got {value!r}", lambda value: isinstance(value, str))
_NUMBER = Rule("{name} must be a number, got {value!r}", is_number)
_AMOUNT = Rule("{name} >= 0 must hold, but got {value!r}", lambda v: is_number(v) and v >= 0)
_WHOLE = Rule("{name} must be whole above 1, but got {value!r}", lambda v: v <= 1 or v % 1 == 0)
_SHARE = Rule("0 < {name} <= 1 must hold, but got {value!r}", lambda value: 0 < value <= 1)
_SEED = Rule("{name} must be an integer >= 0, got {value!r}", lambda value: is_count(value, 0))
_TIME = Rule("{name} must be seconds above 0, got {value!r}", is_positive)
_TIMEOUT = Rule(
    f"0 < {{name}} <= {MAX_TIMEOUT_S} must hold, but got {{value!r}}",
    lambda value: is_positive(value) and value <= MAX_TIMEOUT_S,
)
_SLOTS = Rule(
    "{name} must be a number >= 1 or auto, got {value!r}",
    lambda value: value == "auto" or is_count(value),
)
_RUNGS = Rule(
    "{name} must be auto, off or a list of steps, got {value!r}",
    lambda value: (
        value in ("auto", "off")
        or (isinstance(value, list) and all(is_count(step) for step in value))
    ),
)
_BEGIN = Rule(
    "{name} must be a list of configs, each a mapping, or a file of them, got {value!r}",
    lambda value: (
        bool(value)
        if isinstance(value, str)
        else isinstance(value, list) and all(isinstance(one, dict) for one in value)
    ),
)
_LIST = Rule("{name} must be a list, got {value!r}", lambda value: isinstance(value, list))
_CLASSES = Rule(
    "{name} must be a list of module:Class, got {value!r}",
    lambda value: all(isinstance(one, str) and ":" in one for one in value),
)
_MAPPING = Rule("{name} must be a mapping, got {value!r}", lambda value: isinstance(value, dict))
_KEYS = Rule("names of {name} must be text, got {value!r}", _has_text_keys)

TEXT = Kind((_TEXT,))
FOLDER = Kind((_TEXT,), metavar="DIR")
NUMBER = Kind((_NUMBER,), float)
AMOUNT = Kind((_AMOUNT,), float)
GPUS = Kind((_AMOUNT, _WHOLE), float)
SHARE = Kind((_SHARE,), float)
SEED = Kind((_SEED,), int, least=0)
SECONDS = Kind((_TIME,), float)
DURATION = Kind((_TIME,), metavar="TIME", parse=parse_duration)
TIMEOUT = replace(DURATION, rules=(_TIMEOUT,))
SLOTS = Kind((_SLOTS,), parse=parse_slots)
_FEATURES = Rule(
    "{name} must be auto, none or names of the summary's numbers, got {value!r}",
    lambda value: (
        value in ("auto", "none")
        or (isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value))
    ),
)
FEATURES = Kind((_FEATURES,), metavar="auto|none|A,B,C", parse=parse_names)
BEGIN = Kind((_BEGIN,), metavar="FILE")
RUNGS = Kind((_RUNGS,), metavar="auto|off|A,B,C", parse=parse_rungs)
LIMITS = Kind((_LIST,), metavar="'NAME<=NUMBER'", parse=list, joins="items")
_OBJECTIVES = Rule(
    "{name} must be texts such as 'flops min', got {value!r}",
    lambda value: all(isinstance(one, str) for one in value),
)
OBJECTIVES = Kind((_LIST, _OBJECTIVES), metavar="'METRIC min|max'", parse=list, joins="items")
CLASSES = Kind((_LIST, _CLASSES), metavar="MODULE:CLASS", parse=list, joins="items")
MAPPING = Kind((_MAPPING,))
OPTIONS = pairs(_MAPPING)
KEYWORDS = pairs(_MAPPING, _KEYS)
