"""History of a search: a fold of events into trials.

The history is the only state of a search: everything else is rebuilt from it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nasbo.errors import JournalError
from nasbo.history import events as ev
from nasbo.history.endings import Ending
from nasbo.history.estimates import Estimates
from nasbo.history.front import Reference
from nasbo.history.growing import GrowingRun, GrowingTrial
from nasbo.history.journal import without_collection
from nasbo.history.objectives import Mode, Objectives
from nasbo.history.past import Past
from nasbo.history.records import (
    Attempt,
    Measurement,
    Repeating,
    Round,
    Run,
    State,
    Trial,
    config_key,
)
from nasbo.history.rungs import Rungs
from nasbo.history.view import Snapshot, View
from nasbo.space import Space
from nasbo.space.difference import first_difference

_PREPARING = (ev.Opened, ev.Budget, ev.RepeatsChanged, ev.Targeted, ev.Started)
"""Events that a new driver may write before any sign of life of its runs."""

_STATES: dict[Ending, State] = {Ending.FINISHED: "finished", Ending.PAUSED: "paused"}
_BEYOND = 2**63
"""Step of a run that finished without one: no stopped run counts as equally far."""


class History(View):
    """History to which events are applied.

    Args:
        space: the search space.
        objectives: the objectives, or the mode of a single metric.
    """

    def __init__(self, space: Space, objectives: Objectives | Mode = "min") -> None:
        self.space, self.objectives = space, Objectives.of(objectives)
        self.settings = None
        self.rounds: list[Round] = []
        self.budget, self.is_exhausted, self.repeating = None, False, Repeating()
        self.rungs, self.retired, self.reference = None, set[int](), None
        self.keys: set[str] = set()
        self.gaps: list[tuple[float, float]] = []
        self.last_time = self._last_sign = 0.0
        self._past: dict[str, Past] = {}
        self._trials: dict[int, GrowingTrial] = {}
        self._owners: list[int] = []
        self._open: dict[int, GrowingRun] = {}
        self._twins: dict[int, list[int]] = {}
        self._furthest = 0
        self._full_stops: set[int] = set()
        self._estimates = Estimates()
        self._estimated: set[int] = set()
        self._frozen: dict[int, Trial] = {}
        self._stale: set[int] = set()
        self._view: tuple[Trial, ...] | None = ()
        self._n_observed = 0
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    # Reading

    @property
    def trials(self) -> Sequence[Trial]:  # type: ignore[override]
        if self._view is None:
            self._refresh()
            self._view = tuple(self._frozen.values())
        return self._view

    def trial(self, number: int) -> Trial:
        owner = self._owner(number)
        self._refresh()
        return self._frozen[owner]

    @property
    def past(self) -> tuple[Past, ...]:  # type: ignore[override]
        def trials(name: str) -> tuple[Trial, ...]:
            return tuple(trial for trial in self.trials if trial.info.get("origin") == name)

        return tuple(replace(one, trials=trials(one.name)) for one in self._past.values())

    @property
    def open_runs(self) -> list[Run]:
        return [self._open[number].frozen() for number in sorted(self._open)]

    @property
    def open_numbers(self) -> list[int]:
        """Numbers of the runs that have not ended."""
        return sorted(self._open)

    def is_open(self, number: int) -> bool:
        """Whether a run has not ended."""
        return number in self._open

    @property
    def n_runs(self) -> int:
        """Number of runs, which is the number of the next run."""
        return len(self._owners)

    @property
    def n_suggested(self) -> int:
        return len(self._trials) - self._n_observed

    @property
    def n_ended(self) -> int:
        return self.n_suggested - sum(run.number == run.trial for run in self._open.values())

    def snapshot(self) -> Snapshot:
        """The present history, for other threads."""
        with self._lock:
            return Snapshot(self)

    def _refresh(self) -> None:
        """Rebuild the trials that events have changed."""
        for number in sorted(self._stale):
            trial = self._trials[number]
            source = trial if trial.twin is None else self._trials[trial.twin]
            values = source.values
            if number in self._full_stops and trial.runs[0].value is not None:
                values = {number: trial.runs[0].value}
            estimate = self._estimates.of(source.runs[0].number, source.info, values)
            if estimate is not None:
                self._estimated.add(number)
            self._frozen[number] = trial.frozen(values.values(), estimate)
        self._stale.clear()

    # Events

    def apply(self, event: ev.Event) -> None:
        """Apply one event."""
        with self._lock:
            _HANDLERS[type(event)](self, event)
            self.last_time = event.time
            if not isinstance(event, _PREPARING):
                self._last_sign = event.time

    def _on_settings(self, event: ev.Settings) -> None:
        check_settings(event, self)
        self.settings, self.objectives = event, event.goal
        notes = event.notes
        self.budget = notes.get("trials", self.budget)
        self.repeating = Repeating(notes.get("repeats", 0), notes.get("repeat_top", 3))
        self.rungs = Rungs.from_json(notes.get("rungs"))

    def _on_opened(self, event: ev.Opened) -> None:
        """A new driver: the attempts of the previous one ended with it."""
        self._break_off(self.last_time, event.time)

    def _on_budget(self, event: ev.Budget) -> None:
        self.budget, self.is_exhausted = event.trials, False

    def _on_exhausted(self, event: ev.Exhausted) -> None:
        self.is_exhausted = True

    def _on_repeating(self, event: ev.RepeatsChanged) -> None:
        self.repeating = Repeating(event.repeats, event.top)

    def _on_round(self, event: ev.RoundOpened) -> None:
        opened = Round(event.round, event.size, event.unseen, event.time, event.seconds)
        self.rounds.append(opened)
        if event.estimates is not None:
            self._estimate(event.estimates, set(event.unseen))

    def _estimate(self, found: Mapping[str, Any], unseen: set[int]) -> None:
        """Replace all earlier estimates by those of a decision."""
        self._estimates = Estimates.of_json(found, len(self._owners), unseen)
        changed = self._estimated | {self._owner(one) for one in (*self._estimates.trials, *unseen)}
        self._estimated = set()
        for number in changed:
            self._touch(number)
            for follower in self._twins.get(number, ()):
                self._touch(follower)

    def _on_suggested(self, event: ev.Suggested) -> None:
        run = GrowingRun(event.trial, event.trial, event.time)
        trial = GrowingTrial(run, event.config, event.subspace, event.source)
        trial.round, trial.info = event.round, dict(event.info)
        self._add(trial)

    def _on_reference(self, event: ev.ReferenceSet) -> None:
        self.reference = Reference(event.values, event.is_log)

    def _on_past(self, event: ev.PastRead) -> None:
        goal = Objectives.from_json(event.objectives)
        self._past[event.name] = Past(event.name, event.digest, event.yaml, goal)

    def _on_observed(self, event: ev.Observed) -> None:
        run = GrowingRun(event.trial, event.trial, event.time, "finished")
        run.ending, run.value, run.ended_at = Ending.FINISHED, event.value, event.time
        run.metrics = event.metrics
        self._n_observed += 1
        trial = GrowingTrial(run, event.config, event.subspace, "observed")
        if event.origin:
            trial.info = {"origin": event.origin, "is_comparable": event.is_comparable}
        self._add(trial)

    def _on_repeated(self, event: ev.Repeated) -> None:
        owner = self._owner(event.trial)
        self._number(event.run, owner)
        run = GrowingRun(event.run, owner, event.time)
        self._trials[owner].runs.append(run)
        self._open[event.run] = run
        self._touch(owner)

    def _on_targeted(self, event: ev.Targeted) -> None:
        run = self._run(event.run)
        if run.ending is Ending.PAUSED:
            run.go_on(event.is_from_start, event.reason)
            self.retired.discard(run.number)
            self._open[run.number] = run
            self._estimates.unseen.add(run.number)
        elif run.ending is not None:
            raise JournalError(f"run {run.number} has ended already ({run.ending})")
        run.until = event.until

    def _on_retired(self, event: ev.Retired) -> None:
        self.retired.add(event.run)

    def _on_rung_dropped(self, event: ev.RungDropped) -> None:
        if self.rungs is not None:
            self.rungs = self.rungs.without(event.step)

    def _on_started(self, event: ev.Started) -> None:
        run = self._run(event.run)
        if run.is_running:  # in journals of older drivers, which did not record that they opened it
            self._break_off(self._last_sign, event.time)
        run.state = "running"
        run.attempts.append(Attempt(event.time))

    def _on_reported(self, event: ev.Reported) -> None:
        run = self._run(event.run)
        run.step, run.metrics = event.step, event.metrics
        self._reach(event.step)
        run.measurements.append(Measurement(event.step, event.value, event.metrics, event.time))

    def _on_requeued(self, event: ev.Requeued) -> None:
        run = self._run(event.run)
        self._end_attempt(run, event.time)
        run.state, run.message = "waiting", event.message
        run.retries[str(event.ending)] += 1

    def _on_ended(self, event: ev.Ended) -> None:
        run = self._run(event.run)
        if run.ending is not None:
            raise JournalError(f"run {run.number} has ended already ({run.ending})")
        if event.twin is None:
            self._end_attempt(run, event.time)
        del self._open[run.number]
        run.ending, run.value, run.ended_at = event.ending, event.value, event.time
        run.state = _STATES.get(event.ending, "failed")
        run.metrics = event.metrics or run.metrics
        run.step, run.message = event.step or run.step, event.message
        if run.ending in (Ending.PAUSED, Ending.STOPPED):
            run.pause()
        is_unknown = run.ending is Ending.FINISHED and not run.step
        self._reach(_BEYOND if is_unknown else run.step)
        full = self._furthest if self.rungs is None else max(self._furthest, self.rungs.full)
        if run.ending is Ending.STOPPED and 0 < run.step == full:
            self._full_stops.add(run.trial)
        if event.twin is not None:
            self._trials[run.trial].twin = event.twin
            self._twins.setdefault(event.twin, []).append(run.trial)
        for follower in self._twins.get(run.trial, ()):
            self._touch(follower)

    def _reach(self, step: int) -> None:
        """Update the furthest step: runs stopped before it are no full results."""
        if step > self._furthest:
            self._furthest = step
            for number in self._full_stops:
                self._touch(number)
            self._full_stops.clear()

    def _break_off(self, end: float, start: float) -> None:
        """Record a gap between two drivers; running attempts end at its beginning."""
        if self._trials and start > end:
            self.gaps.append((end, start))
        for run in self._open.values():
            if run.is_running:
                run.end_attempt(end)
                self._touch(run.trial)

    def _end_attempt(self, run: GrowingRun, time: float) -> None:
        """End the present attempt.

        A run that ends without a new start although its driver died has run on: another process
        holds it, as with ask and tell. Then there was no gap.
        """
        if run.is_running or (run.state == "running" and run.attempts):
            run.end_attempt(time)
            start = run.attempts[-1].start
            self.gaps = [gap for gap in self.gaps if gap[1] <= start]

    # Numbers

    def _add(self, trial: GrowingTrial) -> None:
        run = trial.runs[0]
        self._number(run.number, run.number)
        self._trials[run.number] = trial
        if run.ending is None:
            self._open[run.number] = run
        self.keys.add(config_key(trial.config))
        self._touch(run.number)

    def _number(self, number: int, owner: int) -> None:
        if number != len(self._owners):
            raise JournalError(f"run {number} must be number {len(self._owners)}")
        self._owners.append(owner)

    def _owner(self, number: object) -> int:
        if not isinstance(number, int) or not 0 <= number < len(self._owners):
            raise JournalError(f"no trial {number!r}: there are {len(self._owners)}")
        return self._owners[number]

    def _run(self, number: int) -> GrowingRun:
        """A run that an event changes."""
        owner = self._owner(number)
        self._touch(owner)
        if number in self._open:
            return self._open[number]
        return next(run for run in self._trials[owner].runs if run.number == number)

    def _touch(self, owner: int) -> None:
        self._stale.add(owner)
        self._view = None


_HANDLERS: dict[type[ev.Event], Callable[[History, Any], None]] = {
    ev.Settings: History._on_settings,
    ev.Opened: History._on_opened,
    ev.Budget: History._on_budget,
    ev.Exhausted: History._on_exhausted,
    ev.RepeatsChanged: History._on_repeating,
    ev.RoundOpened: History._on_round,
    ev.Suggested: History._on_suggested,
    ev.PastRead: History._on_past,
    ev.Observed: History._on_observed,
    ev.ReferenceSet: History._on_reference,
    ev.Repeated: History._on_repeated,
    ev.Targeted: History._on_targeted,
    ev.Retired: History._on_retired,
    ev.RungDropped: History._on_rung_dropped,
    ev.Started: History._on_started,
    ev.Reported: History._on_reported,
    ev.Requeued: History._on_requeued,
    ev.Ended: History._on_ended,
}


def check_settings(event: ev.Settings, history: History) -> None:
    """Raise ``JournalError`` if a journal belongs to another space or mode."""
    if event.space != history.space.fingerprint():
        told = "the journal belongs to another search space"
        if event.tree is not None:
            told += f": {first_difference(event.tree, history.space.to_dict())}"
        raise JournalError(told)
    if event.goal.first.mode != history.mode:
        raise JournalError(f"the journal has mode {event.goal.first.mode!r}, not {history.mode!r}")


def replay(space: Space, objectives: Objectives | Mode, lines: Iterable[ev.Line]) -> History:
    """The history of a journal's lines."""
    history, decode = History(space, objectives), ev.Decoder()
    with without_collection():
        for line in lines:
            history.apply(decode(line))
    return history
