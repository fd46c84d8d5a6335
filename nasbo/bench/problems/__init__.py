"""The registry of problems: a name comes in, a `Problem` goes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from nasbo.bench.problem import Problem
from nasbo.errors import NasboError


@dataclass(frozen=True)
class Entry:
    """How a problem is made, and where it stands in the tables.

    Attributes:
        group: Problems of one group are ranked together ("jenatton", "cash", "synthetic", ...).
        half: Settings of our methods were chosen on "tuning"; "held-out" is reported apart.
        is_slow: Evaluations cost seconds or need data to be made first; not in the quick suite.
    """

    make: Callable[[], Problem]
    group: str
    half: Literal["tuning", "held-out"]
    summary: str
    is_slow: bool = False


PROBLEMS: dict[str, Entry] = {}


def make_problem(name: str) -> Problem:
    """The problem of a name; an unknown one lists the known ones."""
    if name not in PROBLEMS:
        raise NasboError(f"problem must be one of {', '.join(sorted(PROBLEMS))}, got {name!r}")
    return PROBLEMS[name].make()
