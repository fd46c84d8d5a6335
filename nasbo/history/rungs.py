"""Rungs: steps at which trials are compared before some of them are trained further."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from nasbo.errors import NasboError

LEAST = 2
"""Lowest rung of ``auto``: after one epoch, ranks are hardly informative."""
MIN_FACTOR = 2.0
N_AUTO = 4


@dataclass(frozen=True)
class Rungs:
    """The rungs of a search.

    Attributes:
        steps: steps of all rungs, increasing; the last one is a full training.
        eta: one of ``eta`` trials is promoted from a rung to the next.
        resumes: whether trainings continue from their checkpoints; if not, a promoted trial is
            trained from the start, which is charged to the budget.
        dropped: rungs at which no further trial pauses, as their ranks are misleading.
    """

    steps: tuple[int, ...]
    eta: int = 3
    resumes: bool = True
    dropped: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        steps = self.steps
        if len(steps) < 2 or any(not _is_count(step) for step in steps):
            raise NasboError(f"rungs must be at least two whole numbers of steps, got {steps!r}")
        if any(low >= high for low, high in pairwise(steps)):
            raise NasboError(f"rungs must increase, got {','.join(map(str, steps))}")
        if not _is_count(self.eta) or self.eta < 2:
            raise NasboError(f"eta must be a whole number >= 2, got {self.eta!r}")

    @staticmethod
    def auto(full: int, eta: int = 3, resumes: bool = True) -> Rungs | None:
        """Rungs of a training of ``full`` steps; ``None`` if it is too short.

        They are a factor of eta apart, at most four, none below 2, and neighbours are at
        least a factor of 2 apart.
        """
        steps = [full]
        for power in range(1, N_AUTO):
            step = round(full / eta**power)
            if step >= LEAST and steps[0] >= MIN_FACTOR * step:
                steps.insert(0, step)
        return Rungs(tuple(steps), eta, resumes) if len(steps) > 1 else None

    @staticmethod
    def from_json(plain: Mapping[str, Any] | None) -> Rungs | None:
        """Parse rungs from the plain values of ``to_json``."""
        if not plain:
            return None
        return Rungs(tuple(plain["steps"]), plain["eta"], plain["resumes"])

    def to_json(self) -> dict[str, Any]:
        """The rungs as plain values, without ``dropped``."""
        return {"steps": list(self.steps), "eta": self.eta, "resumes": self.resumes}

    def without(self, step: int) -> Rungs:
        """Copy in which no further trial pauses at ``step``."""
        return replace(self, dropped=self.dropped | {step})

    @property
    def full(self) -> int:
        """Number of steps of a full training."""
        return self.steps[-1]

    @property
    def lower(self) -> tuple[int, ...]:
        """All rungs at which trials pause or have paused, without the full training."""
        return self.steps[:-1]

    @property
    def first(self) -> int:
        """The rung at which new trials pause; the full training if all rungs were dropped."""
        return self.above(0)

    def above(self, step: int) -> int:
        """The next rung above a step that was not dropped; at most the full training."""
        kept = (one for one in self.steps if one > step and one not in self.dropped)
        return next(kept, self.full)

    def target(self, step: int) -> int | None:
        """A rung as the target of a run: ``None`` for a full training, which ends by itself."""
        return None if step >= self.full else step

    def __str__(self) -> str:
        return "-".join(map(str, self.steps))


def parse_rungs(
    words: str | Sequence[int], full: int | None, eta: int = 3, resumes: bool = True
) -> Rungs | None:
    """Parse rungs given by a user; ``None`` for ``off``.

    Args:
        words: ``off``, ``auto``, or the steps.
        full: number of steps of a full training according to the trainer; ``None`` if unknown.
        eta: one of ``eta`` trials is promoted.
        resumes: whether trainings continue from their checkpoints.

    Raises:
        NasboError: the rungs break a rule.
    """
    if words == "off":
        return None
    if words == "auto":
        if full is None:
            raise NasboError(
                "rungs must be given as steps, e.g. 4,11,33,100: the trainer does not say how long "
                "a full training is (a function steps(options) beside it would)"
            )
        return Rungs.auto(full, eta, resumes)
    if isinstance(words, str):
        raise NasboError(f"rungs must be auto, off or a list of steps, got {words!r}")
    rungs = Rungs(tuple(words), eta, resumes)
    if full is not None and rungs.full != full:
        raise NasboError(
            f"the last rung must be a full training, {full} steps by the trainer, got {rungs.full}"
        )
    return rungs


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
