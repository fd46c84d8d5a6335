"""Decides when the method is asked for how many configs, and which trial goes next. No Ray here."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from nasbo.errors import NasboError
from nasbo.history import Run, Trial
from nasbo.history import events as ev
from nasbo.loop import design_left, next_round_size
from nasbo.methods import Suggestion
from nasbo.repeats import due_repeats
from nasbo.search import Search


@dataclass(frozen=True)
class Schedule:
    """How trials follow each other.

    Attributes:
        kind: ``round`` waits for the trials of a round before the next is decided; ``async``
            refills each free slot at once, with the running trials pending.
        batch: configs per round after the design; default one per subspace.
        share: part of a round's trials that must have ended before the next one opens.
        deadline_s: seconds after which the next round opens anyhow.
        budget: how many configs there are to be in all; ``None`` for no limit of our own.
    """

    kind: str = "round"
    batch: int | None = None
    share: float = 1.0
    deadline_s: float | None = None
    budget: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("round", "async"):
            raise NasboError(f"schedule must be 'round' or 'async', got {self.kind!r}")
        if self.batch is not None and not (_is_number(self.batch, int) and self.batch >= 1):
            raise NasboError(f"batch must be an integer >= 1, got {self.batch!r}")
        if not (_is_number(self.share) and 0 < self.share <= 1):
            raise NasboError(f"0 < share <= 1 must hold, but got {self.share!r}")
        deadline_s = self.deadline_s
        if deadline_s is not None and not (_is_number(deadline_s) and 0 < deadline_s < math.inf):
            raise NasboError(f"deadline_s must be seconds above 0, got {deadline_s!r}")


def _is_number(value: object, kind: Any = int | float) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


class Rounds:
    """The queue between the method and the workers.

    Args:
        search: the history; trials that are open in it come first.
        schedule: when to decide on how many.
        screen: tells of a run, just before it would start, whether it ended without training
            (the screen has then told the search so).
        cost: what a trial will cost, if anybody knows: within a round the dearest start first, so
            that the slots become free at about the same time.
    """

    def __init__(
        self,
        search: Search,
        schedule: Schedule,
        screen: Callable[[Run], bool] = lambda run: False,
        cost: Callable[[Trial], float] = lambda trial: 0.0,
    ) -> None:
        self.search = search
        self.schedule = schedule
        self._screen = screen
        self._cost = cost
        self._waiting: deque[int] = deque()
        self._queue(search.history.open_numbers)

    @property
    def left(self) -> int | None:
        """How many configs of the budget have not been decided on."""
        budget = self.schedule.budget
        return None if budget is None else max(budget - self.search.history.n_suggested, 0)

    @property
    def is_done(self) -> bool:
        """Whether everything has been handed out."""
        return not self._waiting and (self.left == 0 or self.search.history.is_exhausted)

    def wanted(self, slots: int | None) -> int:
        """How many configs the method should decide on now; 0 for none.

        Args:
            slots: how many trials can run at once; ``None`` if nobody knows.
        """
        if self._waiting or self._repeat() or self.search.history.is_exhausted or self.left == 0:
            return 0
        n = self._async_size(slots) if self.schedule.kind == "async" else self._round_size(slots)
        return n if self.left is None else min(n, self.left)

    def add(self, suggestions: list[Suggestion], seconds: float, unseen: Sequence[int]) -> None:
        """Queue what the method decided; nothing at all means that the space is used up."""
        if not suggestions:
            self.search.record(ev.Exhausted())
            return
        new = self.search.add_round(suggestions, seconds, unseen)
        self._queue([trial.id for trial in new])

    def _queue(self, numbers: Sequence[int]) -> None:
        trial = self.search.history.trial
        self._waiting.extend(sorted(numbers, key=lambda n: (-self._cost(trial(n)), n)))

    def forget(self, numbers: Collection[int]) -> None:
        """Leave runs out of the queue that somebody else holds."""
        self._waiting = deque(number for number in self._waiting if number not in numbers)

    def requeue(self, number: int) -> None:
        """Put a run that was handed out, but broke off, to the front."""
        self._waiting.appendleft(number)

    def next_run(self) -> Run | None:
        """The run to start now, if there is one."""
        while self._waiting:
            run = self.search.history.run(self._waiting.popleft())
            if run.is_open and not self._screen(run):
                return run
        return None

    def _repeat(self) -> bool:
        """Queue repeats of the best configs where they are due: when a round is over, or at once.

        The next round waits for them, so that the method sees their means.
        """
        is_time = self.schedule.kind == "async" or self._round_is_over()
        due = due_repeats(self.search.history) if is_time else []
        self._queue([run.number for run in self.search.repeat(*due)])
        return bool(due)

    def _async_size(self, slots: int | None) -> int:
        n_open = len(self.search.history.open_numbers)
        if slots is None:
            return max(design_left(self.search.history), 1)
        return max(slots - n_open, 0)

    def _round_size(self, slots: int | None) -> int:
        if not self._round_is_over():
            return 0
        return next_round_size(self.search.history, self.schedule.batch, slots or 1)

    def _round_is_over(self) -> bool:
        history = self.search.history
        if not history.rounds:
            return True
        last = history.rounds[-1]
        if not history.open_numbers:
            return True
        ended = sum(not t.is_open for t in history.trials if t.round == last.number)
        enough = math.ceil(self.schedule.share * last.size - 1e-9)  # 0.55 * 20 is not 11
        if self.schedule.share < 1.0 and ended >= enough:
            return True
        deadline = self.schedule.deadline_s
        return deadline is not None and time.time() - last.time >= deadline
