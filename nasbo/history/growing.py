"""Mutable trials and runs of a history, and their conversion to immutable records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from nasbo.history.endings import Ending
from nasbo.history.records import Attempt, Estimate, Measurement, Pause, Run, Source, State, Trial
from nasbo.space import Config


class GrowingRun:
    """A run that events still change."""

    def __init__(self, number: int, trial: int, time: float, state: State = "waiting") -> None:
        self.number, self.trial, self.created_at, self.state = number, trial, time, state
        self.until: int | None = None
        self.resumed_from = 0
        self.pauses: dict[int, Pause] = {}
        self.reasons: dict[int, str] = {}
        self.n_repeated_steps = 0
        self.attempts: list[Attempt] = []
        self.retries: Counter[str] = Counter()
        self.measurements: list[Measurement] = []
        self.ending: Ending | None = None
        self.value: float | None = None
        self.metrics: Mapping[str, Any] = {}
        self.step, self.message = 0, ""
        self.ended_at: float | None = None

    @property
    def is_running(self) -> bool:
        return bool(self.attempts) and self.attempts[-1].end is None

    def pause(self) -> None:
        """Store the value at a pause, by its target, or at a stop, by the step."""
        if self.value is not None:
            goal = self.until if self.ending is Ending.PAUSED else None
            self.pauses[goal or self.step] = Pause(self.step, self.value)

    def go_on(self, is_from_start: bool, reason: str) -> None:
        """Queue the run again, for a later target."""
        if reason:
            self.reasons[self.until or self.step] = reason
        self.state, self.ending, self.value, self.ended_at = "waiting", None, None, None
        self.n_repeated_steps += self.step if is_from_start else 0
        self.step = self.resumed_from = 0 if is_from_start else self.step

    def end_attempt(self, time: float) -> None:
        """Set the end of the last attempt; an earlier guess is overwritten."""
        last = self.attempts[-1]
        self.attempts[-1] = replace(last, end=max(last.start, time))

    def frozen(self) -> Run:
        return Run(
            number=self.number,
            trial=self.trial,
            until=self.until,
            resumed_from=self.resumed_from,
            pauses=dict(self.pauses),
            reasons=dict(self.reasons),
            n_repeated_steps=self.n_repeated_steps,
            state=self.state,
            attempts=tuple(self.attempts),
            retries=dict(self.retries),
            measurements=tuple(self.measurements),
            ending=self.ending,
            value=self.value,
            metrics=self.metrics,
            step=self.step,
            message=self.message,
            created_at=self.created_at,
            ended_at=self.ended_at,
        )


class GrowingTrial:
    """A trial that events still change."""

    def __init__(self, first: GrowingRun, config: Config, subspace: int, source: Source) -> None:
        self.runs = [first]
        self.config, self.subspace, self.source = config, subspace, source
        self.round, self.info = -1, dict[str, Any]()
        self.twin: int | None = None

    @property
    def values(self) -> dict[int, float]:
        """Values of the finished runs by their numbers; empty unless the first run finished."""
        if self.runs[0].ending is not Ending.FINISHED:
            return {}
        ended = (run for run in self.runs if run.ending is Ending.FINISHED)
        return {run.number: run.value for run in ended if run.value is not None}

    def frozen(self, values: Collection[float], estimate: Estimate | None) -> Trial:
        return Trial(
            id=self.runs[0].number,
            config=self.config,
            subspace=self.subspace,
            source=self.source,
            round=self.round,
            info=self.info,
            runs=tuple(run.frozen() for run in self.runs),
            twin=self.twin,
            values=tuple(values),
            estimate=estimate,
        )
