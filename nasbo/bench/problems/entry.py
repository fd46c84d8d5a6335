"""What the registry knows of a problem before it is made."""

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
    """How a problem is made, and where it stands in the tables.

    Attributes:
        make: Builds the problem; data are read at the first evaluation, not here.
        group: Problems of one group are ranked together ("jenatton", "cash", "synthetic", ...).
        half: Settings of our methods were chosen on "tuning"; "held-out" is reported apart.
        is_slow: Evaluations cost seconds or need data to be made first; not in the quick suite.
        cost: What one evaluation takes on one core, unless it is in the store.
        needs: Data and packages beside nasbo's own, in words.
        check: Raises a NasboError if what is needed is not there.
        store: Where its values are kept on disk; None if they are cheap.
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
