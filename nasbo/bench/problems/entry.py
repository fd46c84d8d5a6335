"""Registry entry of a problem: facts that are known before it is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from nasbo.bench.problem import Problem
from nasbo.bench.problems.store import Store

Half = Literal["tuning", "held-out"]
Cost = Literal["ms", "< 1 s", "seconds"]


def nothing_needed() -> None:
    """The check of a problem that needs neither data nor packages."""


@dataclass(frozen=True)
class Entry:
    """How a problem is made, and its place in the tables.

    Attributes:
        make: Builds the problem; data are read at the first evaluation, not here.
        group: Problems of one group are ranked together ("jenatton", "cash", "synthetic", ...).
        half: Settings of nasbo's methods were chosen on "tuning"; "held-out" is reported
            separately.
        is_slow: Whether evaluations take seconds or need prepared data; not in the quick suite.
        cost: Time of one evaluation on one core, unless it is in the store.
        needs: Required data and packages besides nasbo's own, as text.
        check: Raises a NasboError if a requirement is missing.
        store: Where its values are stored on disk; None if they are cheap.
    """

    make: Callable[[], Problem]
    group: str
    half: Half
    summary: str
    is_slow: bool = False
    cost: Cost = "ms"
    needs: str = ""
    check: Callable[[], None] = nothing_needed
    store: Callable[[], Store] | None = None
