"""Schedules: when the method is asked, and for how many configs."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from nasbo.errors import NasboError
from nasbo.history import History, View
from nasbo.methods.base import design_size
from nasbo.search.begin import has_only_begun
from nasbo.space import Space

MAX_ROUND_SUBSPACES = 64
"""Number of subspaces above which a round has no longer one config for each."""


@dataclass(frozen=True)
class Schedule:
    """How trials follow each other.

    Attributes:
        kind: ``round`` waits for the trials of a round before the next is decided; ``async``
            refills each free slot at once, with the running trials as pending.
        batch: configs per round after the design; by default one per subspace.
        share: fraction of a round's trials that must have ended before the next round opens.
        deadline_s: seconds after which the next round opens in any case.
        budget: total number of configs; ``None`` for no limit.
    """

    kind: str = "round"
    batch: int | None = None
    share: float = 1.0
    deadline_s: float | None = None
    budget: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in SCHEDULES:
            raise NasboError(f"schedule must be 'round' or 'async', got {self.kind!r}")
        if self.batch is not None and not (_is_number(self.batch, int) and self.batch >= 1):
            raise NasboError(f"batch must be an integer >= 1, got {self.batch!r}")
        if not (_is_number(self.share) and 0 < self.share <= 1):
            raise NasboError(f"0 < share <= 1 must hold, but got {self.share!r}")
        deadline_s = self.deadline_s
        if deadline_s is not None and not (_is_number(deadline_s) and 0 < deadline_s < math.inf):
            raise NasboError(f"deadline_s must be seconds above 0, got {deadline_s!r}")

    def is_due(self, history: History) -> bool:
        """Whether there are enough results for the next decision."""
        return SCHEDULES[self.kind].is_due(self, history)

    def size(self, history: History, slots: int | None) -> int:
        """Number of configs of the next decision.

        Args:
            history: of the search.
            slots: number of runs that can be active at once; ``None`` if unknown.
        """
        return SCHEDULES[self.kind].size(self, history, slots)

    def split(self, history: History, slots: int | None, n_due: int, n_new: int) -> tuple[int, int]:
        """How many of the due promotions continue now, and how many configs start with them.

        Args:
            history: of the search.
            slots: number of runs that can be active at once; ``None`` if unknown.
            n_due: number of due promotions.
            n_new: number of configs that would start without promotions.
        """
        return SCHEDULES[self.kind].split(history, slots, n_due, n_new)


class Rounds:
    """Rounds of one config per subspace; the next round starts when all trials have ended.

    With rungs, due promotions belong to the round: up to the number of slots or of new configs.
    """

    @staticmethod
    def is_due(schedule: Schedule, history: History) -> bool:
        if not history.rounds or not history.open_numbers:
            return True
        if has_only_begun(history) and design_left(history) > 0:
            return True  # the design need not know how the user's own configs end
        last = history.rounds[-1]
        ended = sum(not t.is_open for t in history.trials if t.round == last.number)
        enough = math.ceil(schedule.share * last.size - 1e-9)  # 0.55 * 20 is not 11
        if schedule.share < 1.0 and ended >= enough:
            return True
        deadline = schedule.deadline_s
        return deadline is not None and time.time() - last.time >= deadline

    @staticmethod
    def size(schedule: Schedule, history: History, slots: int | None) -> int:
        if not Rounds.is_due(schedule, history):
            return 0
        return next_round_size(history, schedule.batch, slots or 1)

    @staticmethod
    def split(history: History, slots: int | None, n_due: int, n_new: int) -> tuple[int, int]:
        return min(n_due, max(slots or 1, n_new)), n_new


class Async:
    """Free slots are refilled at once; with rungs, by due promotions first."""

    @staticmethod
    def is_due(schedule: Schedule, history: History) -> bool:
        return True

    @staticmethod
    def size(schedule: Schedule, history: History, slots: int | None) -> int:
        if slots is None:
            return max(design_left(history), 1)
        return max(slots - len(history.open_numbers), 0)

    @staticmethod
    def split(history: History, slots: int | None, n_due: int, n_new: int) -> tuple[int, int]:
        n_free = 1 if slots is None else max(slots - len(history.open_numbers), 0)
        n = min(n_due, n_free)
        return n, max(n_new - n, 0)


SCHEDULES: dict[str, type[Rounds] | type[Async]] = {"round": Rounds, "async": Async}


def next_round_size(history: View, batch: int | None = None, slots: int = 1) -> int:
    """Number of configs of the next round.

    The design is one round. After it a round has one config per subspace, or
    ``batch``; more if there are more slots than subspaces; as many as slots if the
    subspaces are too many to visit each.
    """
    space = history.space
    if (left := design_left(history)) > 0:
        return left
    if batch is not None:
        return batch
    return slots if is_crowded(space) else max(space.n_subspaces, slots)


def design_left(history: View) -> int:
    """How many configs of the initial design have not been handed out."""
    return design_size(history.space, history.design_counts(), len(history.objectives))


def is_crowded(space: Space) -> bool:
    """Whether the space has too many subspaces for one config of each per round."""
    return not space.is_listable or space.n_subspaces > MAX_ROUND_SUBSPACES


def _is_number(value: object, kind: Any = int | float) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
