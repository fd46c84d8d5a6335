"""Driver of a search: which run starts next, and what follows from reports and endings.

The driver knows neither Ray nor machines. A runner calls ``next``, ``on_report`` and ``on_end``:
the loop in one process (``nasbo/loop.py``), the simulated cluster of the benchmark, the searcher in
a user's own Tuner and that of a sweep all do so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

from nasbo.history import Ending, Run, Trial
from nasbo.history import events as ev
from nasbo.methods import Suggestion
from nasbo.search.repeats import due_repeats
from nasbo.search.rungs import (
    Promotion,
    due_promotions,
    first_target,
    misleading_rungs,
    room,
    stretch,
)
from nasbo.search.schedule import Schedule
from nasbo.search.search import Search
from nasbo.search.stopping import TO_THE_END, StoppingRule, Verdict

Decided = tuple[list[Suggestion], float]
"""Suggestions, and the seconds that the decision took."""


class Next(Enum):
    """Answer of ``Driver.next`` if there is no run to start."""

    WAIT = "wait"
    DONE = "done"


class Decider(Protocol):
    """Calls the method, in this process or another one."""

    @property
    def is_busy(self) -> bool:
        """Whether a decision was begun and not fetched yet."""

    def begin(self, search: Search, n: int) -> None:
        """Start deciding on ``n`` configs."""

    def fetch(self, is_idle: bool) -> Decided | None:
        """The decision, if it is ready. With ``is_idle`` no run is active, so it may block."""


class LocalDecider:
    """Calls the method in this process, synchronously."""

    def __init__(self) -> None:
        self._decided: Decided | None = None

    @property
    def is_busy(self) -> bool:
        return self._decided is not None

    def begin(self, search: Search, n: int) -> None:
        self._decided = search.decide(n)

    def fetch(self, is_idle: bool) -> Decided | None:
        decided, self._decided = self._decided, None
        return decided


@dataclass(frozen=True)
class Policies:
    """Policies of a driver.

    Attributes:
        screens: called with a run just before its start; ``True`` means that the screen has ended
            the run without training.
        cost: expected cost of a trial, if known: within a round the most expensive ones start
            first, so that all slots become free at about the same time.
        retry: whether a run that ended with a message is started again.
        ended: called with each run that has ended or paused.
        stopping: rule for how far runs are trained.
    """

    screens: Sequence[Callable[[Run], bool]] = ()
    cost: Callable[[Trial], float] = lambda trial: 0.0
    retry: Callable[[Run, Ending, str], bool] = lambda run, ending, message: False
    ended: Sequence[Callable[[Run], object]] = ()
    stopping: StoppingRule = TO_THE_END


class Driver:
    """Decides what runs next.

    Args:
        search: the search; its open runs come first.
        schedule: when to decide, and on how many configs.
        decider: calls the method; by default in this process.
        policies: screens, retries and the like.
    """

    def __init__(
        self,
        search: Search,
        schedule: Schedule,
        decider: Decider | None = None,
        policies: Policies | None = None,
    ) -> None:
        self.search, self.schedule = search, schedule
        self.running: set[int] = set()
        self._targets: dict[int, int | None] = {}
        self._decider: Decider = decider or LocalDecider()
        self._policies = policies or Policies()
        self._waiting: deque[int] = deque()
        self._unseen: list[int] = []
        self._promotions: list[Promotion] = []
        self.queue(search.history.open_numbers)

    # Called by the runner

    def next(self, slots: int | None = None) -> Run | Next:
        """The run to start now, which is recorded as started.

        Args:
            slots: number of runs that can be active at once; ``None`` if unknown.
        """
        for number, until in self._policies.stopping.due(self.search.history):
            self.resume(number, until)
        self._decide(slots)
        if slots is not None and len(self.running) >= slots:
            return Next.WAIT
        run = self.next_waiting()
        if run is None:
            return Next.DONE if self.is_done and not self.running else Next.WAIT
        return self._start(run)

    def on_report(
        self, run: int, step: int, value: float | None, metrics: Mapping[str, Any]
    ) -> Verdict:
        """Record a measurement of a run; returns whether the run goes on."""
        self.search.report(run, step, value, metrics)
        target, ask = self._targets.get(run), self._policies.stopping.verdict
        if target is not None and step >= target:
            return Verdict.PAUSE
        if ask is None:
            return Verdict.GO_ON
        known = self.search.history.run(run)
        return ask(known, known.measurements[-1])

    def on_end(
        self,
        run: int,
        value: float | None = None,
        *,
        error: str | None = None,
        metrics: Mapping[str, Any] | None = None,
        message: str = "",
        step: int = 0,
    ) -> bool:
        """Record how a run ended, as ``Search.tell`` does; returns whether it will be retried.

        A run that obeyed a verdict ends with the error ``paused`` or ``stopped`` and its value. One
        that trained on to its end has finished.
        """
        self.running.discard(run)
        if error is not None:
            ending = Ending.of(error)
            if self._policies.retry(self.search.history.run(run), ending, message):
                self.search.requeue(run, error, message)
                self._waiting.appendleft(run)
                return True
        self.search.tell(run, value, error=error, metrics=metrics, message=message, step=step)
        self.settle(run)
        return False

    def leave_open(self, run: int) -> None:
        """Leave a run open for a resume, as it broke off for an unrelated reason."""
        self.running.discard(run)

    def resume(self, run: int, until: int | None = None) -> None:
        """Continue a paused run next, under its own number, until a step or to its end."""
        self.search.target(run, until)
        self._waiting.appendleft(run)

    # State of the search

    @property
    def left(self) -> int | None:
        """Number of configs of the budget that have not been decided on."""
        budget = self.schedule.budget
        return None if budget is None else room(self.search.history, budget)

    @property
    def is_ending(self) -> bool:
        """Whether no further configs will be decided on."""
        return self.left == 0 or self.search.history.is_exhausted

    @property
    def is_done(self) -> bool:
        """Whether all runs have been started."""
        return not self._waiting and self.is_ending and not self._due()

    @property
    def is_deciding(self) -> bool:
        """Whether the method is deciding."""
        return self._decider.is_busy

    def wanted(self, slots: int | None) -> int:
        """Number of configs that the method should decide on now; 0 for none."""
        history = self.search.history
        if self._waiting or self._repeat() or history.is_exhausted or self.left == 0:
            return 0
        n = self.schedule.size(history, slots)
        return n if self.left is None else min(n, self.left)

    def add(self, suggestions: list[Suggestion], seconds: float, unseen: Sequence[int]) -> None:
        """Queue the method's decision; an empty one means that the space is exhausted."""
        if not suggestions:
            self.search.record(*(one.event for one in self._promotions), ev.Exhausted())
        new = self.search.add_round(suggestions, seconds, unseen, self._promotions)
        self._queue_promoted([trial.id for trial in new])

    def queue(self, numbers: Sequence[int]) -> None:
        """Queue runs for a slot, the most expensive first."""
        history, policies = self.search.history, self._policies

        def expense(number: int) -> float:
            return policies.cost(history.trial(number)) * stretch(history, history.run(number))

        self._waiting.extend(sorted(numbers, key=lambda n: (-expense(n), n)))

    def forget(self, numbers: Collection[int]) -> None:
        """Remove runs from the queue that another process holds."""
        self._waiting = deque(number for number in self._waiting if number not in numbers)

    def settle(self, run: int) -> None:
        """Call the policies for a run that has ended or paused."""
        ended = self.search.history.run(run)
        for call in self._policies.ended:
            call(ended)

    def _decide(self, slots: int | None) -> None:
        """Fetch a decision that is ready; start one that is due."""
        if self._decider.is_busy:
            self._fetch()
        if self._decider.is_busy:
            return
        self._drop_rungs()
        self._promotions, n = self._split(slots, self.wanted(slots))
        if n:
            self.search.set_reference()
            self._unseen = self.search.history.open_numbers
            self._decider.begin(self.search, n)
            self._fetch()
        elif self._promotions:
            self.search.promote(*self._promotions)
            self._queue_promoted()

    def _fetch(self) -> None:
        decided = self._decider.fetch(is_idle=not self.running)
        if decided is not None:
            self.add(*decided, self._unseen)

    def _start(self, run: Run) -> Run:
        """Record the start of a run; the first start sets its target."""
        until = run.until if run.attempts else self._first_target(run)
        if until != run.until:
            self.search.target(run, until)
        self.search.start(run)
        self.running.add(run.number)
        self._targets[run.number] = until
        return replace(run, until=until)

    def _first_target(self, run: Run) -> int | None:
        own = self._policies.stopping.until(run)
        return first_target(self.search.history, run.is_repeat) if own is None else own

    def next_waiting(self) -> Run | None:
        """The next run of the queue that no screen ends."""
        while self._waiting:
            run = self.search.history.run(self._waiting.popleft())
            if run.is_open and not any(screen(run) for screen in self._policies.screens):
                return run
        return None

    def _split(self, slots: int | None, n: int) -> tuple[list[Promotion], int]:
        """The promotions that are due now, and how many of ``n`` new configs start with them.

        They are journaled together with the configs: a driver that is killed in between records
        neither, and the next one decides the same.
        """
        history, budget = self.search.history, self.schedule.budget
        if history.rungs is None or self._waiting or not self.schedule.is_due(history):
            return [], n
        due = self._due(slots or 1)
        n_promoted, n_new = self.schedule.split(history, slots, len(due), n)
        promotions = due[:n_promoted]
        if budget is not None:
            n_new = min(n_new, room(history, budget, sum(one.n_steps for one in promotions)))
        return promotions, n_new

    def _queue_promoted(self, new: Sequence[int] = ()) -> None:
        """Queue promoted runs together with new ones."""
        promoted, self._promotions = [one.run for one in self._promotions], []
        self.queue([*promoted, *new])

    def _drop_rungs(self) -> None:
        """Record rungs that are dropped because their ranks are misleading."""
        if self.schedule.is_due(self.search.history):
            for step, found in misleading_rungs(self.search.history):
                self.search.record(ev.RungDropped(step=step, agreement=round(found, 4)))

    def _due(self, slots: int = 1) -> list[Promotion]:
        return due_promotions(self.search.history, self.schedule.budget, self.is_ending, slots)

    def _repeat(self) -> bool:
        """Queue the repeats of the best configs that are due; returns whether there are any.

        The next round waits for them, so that the method sees the means.
        """
        history = self.search.history
        due = due_repeats(history) if self.schedule.is_due(history) else []
        self.queue([run.number for run in self.search.repeat(*due)])
        return bool(due)
