"""Immutable records of a history: trials, runs and measurements.

A trial is one config. A run is one training of it: the first one, or a repeat with another seed. A
run that breaks off is continued in further attempts. Measurements are what a training reports.
"""

from __future__ import annotations

import copy
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Literal, NamedTuple

from nasbo.history.endings import Ending
from nasbo.space import Config

Source = Literal["design", "model", "probe", "fallback", "observed"]
State = Literal["waiting", "running", "paused", "finished", "failed"]
PREDICTION = ("predicted", "predicted_low", "predicted_high")
"""Keys of a trial's info: predicted value, and its interval of one standard deviation."""
SCORED_BY = "scored_by"
"""Key of a trial's info: the key of its acquisition value there."""


def config_key(config: Mapping[str, Any]) -> str:
    """A text that is equal for two configs if and only if they are equal."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"))


def json_safe(value: Any) -> Any:
    """Convert to JSON values: tensor scalars become plain, non-finite numbers ``None``."""
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    if getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int | bool) else str(value)


class Estimate(NamedTuple):
    """Mean and standard deviation of a trial's noise-free value."""

    mean: float
    sd: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """Report of a training at one step; ``value`` is that of the objective."""

    step: int
    value: float | None
    metrics: Mapping[str, Any]
    time: float


@dataclass(frozen=True, slots=True)
class Attempt:
    """One stay of a run on a worker; ``end`` is ``None`` while it lasts."""

    start: float
    end: float | None = None


class Pause(NamedTuple):
    """Step at which a run paused or was stopped, and its value there."""

    step: int
    value: float


@dataclass(frozen=True)
class Run:
    """One training of a config.

    Attributes:
        number: unique in the search; determines its folder and its seed.
        trial: number of its trial, which is that of the trial's first run.
        until: step at which it is to pause; ``None`` for its end.
        resumed_from: step of the pause from which it was continued; 0 for none.
        pauses: step and value of each pause, by the target at the time.
        reasons: why it was continued after a pause, by the target at the time.
        n_repeated_steps: steps that were trained again for lack of a checkpoint.
        attempts: its stays on workers; in between it was waiting, or there was no driver.
        retries: how often it was started again, by the name of the ending.
        measurements: its reports in order; a restart may report a step again.
        ending: how it ended; ``None`` while it is open.
        value: value of the objective at its end.
        metrics: metrics of the last report.
    """

    number: int
    trial: int
    until: int | None = None
    resumed_from: int = 0
    pauses: Mapping[int, Pause] = field(default_factory=dict)
    reasons: Mapping[int, str] = field(default_factory=dict)
    n_repeated_steps: int = 0
    state: State = "waiting"
    attempts: tuple[Attempt, ...] = ()
    retries: Mapping[str, int] = field(default_factory=dict)
    measurements: tuple[Measurement, ...] = ()
    ending: Ending | None = None
    value: float | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    step: int = 0
    message: str = ""
    created_at: float = 0.0
    ended_at: float | None = None

    @property
    def is_repeat(self) -> bool:
        return self.number != self.trial

    @property
    def is_open(self) -> bool:
        """Whether it is queued or running."""
        return self.state in ("waiting", "running")

    @property
    def partial(self) -> Pause | None:
        """Step and value of its last pause; ``None`` for a finished run."""
        if self.ending is Ending.FINISHED:
            return None
        return next(reversed([*self.pauses.values()]), None)

    @property
    def is_paused(self) -> bool:
        """Whether it has ended for now, and may be continued from its checkpoint."""
        return self.state == "paused"

    @property
    def cause(self) -> str | None:
        """Why it did not finish; ``None`` for an open or finished run."""
        is_told = self.ending not in (None, Ending.FINISHED)
        return str(self.ending) if is_told else None

    @property
    def current(self) -> Attempt | None:
        """The present attempt, if any."""
        return self.attempts[-1] if self.attempts and self.attempts[-1].end is None else None

    @property
    def seconds(self) -> float:
        """Total duration of the attempts that have ended."""
        return sum(one.end - one.start for one in self.attempts if one.end is not None)

    @property
    def curve(self) -> list[tuple[int, float]]:
        """(step, value) of every measurement with a value."""
        return [(one.step, one.value) for one in self.measurements if one.value is not None]

    def spans(self, now: float) -> list[tuple[float, float]]:
        """Start and end of each attempt; the present one extends to ``now``."""
        ends = (now if one.end is None else one.end for one in self.attempts)
        return [(o.start, max(o.start, end)) for o, end in zip(self.attempts, ends, strict=True)]


@dataclass(frozen=True)
class Trial:
    """One config with all of its trainings.

    Attributes:
        id: its number, that of its first run.
        subspace: index of the config's subspace.
        source: where the config came from.
        round: the round in which it was decided; -1 for results from elsewhere.
        info: the method's info about it.
        runs: its trainings, the first one first.
        twin: number of an earlier trial of the same network, whose result is used.
        values: values of the finished runs; for a twin those of the other trial. Empty until the
            first run has finished. A stopped run counts only if no run went further, as schedulers
            also stop runs at their last step.
        estimate: estimate of its noise-free value; ``None`` if no noise was found, without a value,
            and for trials that are no candidates for the best.
    """

    id: int
    config: Config
    subspace: int
    source: Source
    round: int = 0
    info: Mapping[str, Any] = field(default_factory=dict)
    runs: tuple[Run, ...] = ()
    twin: int | None = None
    values: tuple[float, ...] = ()
    estimate: Estimate | None = None

    @property
    def first(self) -> Run:
        return self.runs[0]

    @property
    def repeats(self) -> tuple[Run, ...]:
        """The trainings with other seeds."""
        return self.runs[1:]

    @property
    def value(self) -> float | None:
        """Mean of the values; ``None`` until the first run has finished."""
        return fmean(self.values) if self.values else None

    @property
    def partial(self) -> Pause | None:
        """Last pause of a trial that was not trained in full."""
        return None if self.values else self.first.partial

    @property
    def last_value(self) -> float | None:
        """The value or, before the end of a full training, that of the last pause."""
        return self.value if self.partial is None else self.partial.value

    @property
    def expected(self) -> float | None:
        """Mean of the estimate or, without one, the observed value."""
        return self.last_value if self.estimate is None else self.estimate.mean

    @property
    def acquisition(self) -> tuple[str, float] | None:
        """Name and value of the acquisition that chose it, if known."""
        name = self.info.get(SCORED_BY, "log_ei")  # older journals have no name
        value = self.info.get(name)
        if not isinstance(value, int | float) or not math.isfinite(value):
            return None
        return name, value

    @property
    def is_comparable(self) -> bool:
        """Whether its value is comparable with others: not if it comes from another trainer."""
        return bool(self.info.get("is_comparable", True))

    def value_at(self, step: int) -> float | None:
        """The value that the first run reported at a step; ``None`` if it did not."""
        return dict(self.first.curve).get(step)

    @property
    def state(self) -> State:
        return self.first.state

    @property
    def until(self) -> int | None:
        """The step at which its first run is to pause; ``None`` for a full training."""
        return self.first.until

    @property
    def resumed_from(self) -> int:
        """The step from which its first run continues; 0 for the start."""
        return self.first.resumed_from

    @property
    def is_open(self) -> bool:
        """Whether its first run has not ended."""
        return self.first.is_open

    @property
    def cause(self) -> str | None:
        return self.first.cause

    @property
    def message(self) -> str:
        return self.first.message

    @property
    def metrics(self) -> Mapping[str, Any]:
        """Metrics of the first run's last report."""
        return self.first.metrics

    @property
    def step(self) -> int:
        return self.first.step

    @property
    def curve(self) -> list[tuple[int, float]]:
        return self.first.curve

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        return self.first.attempts

    @property
    def retries(self) -> Mapping[str, int]:
        """How often the first run was started again, by cause."""
        return self.first.retries

    @property
    def seconds(self) -> float:
        return self.first.seconds

    @property
    def ended_at(self) -> float | None:
        return self.first.ended_at

    @property
    def started_at(self) -> float | None:
        return self.attempts[0].start if self.attempts else None

    def __repr__(self) -> str:
        """Number, value, config and state; the measurements would fill pages."""
        value = "no value" if self.last_value is None else f"{self.last_value:.6g}"
        if self.partial is not None:
            value += f" at step {self.partial.step}"
        state = f"failed: {self.cause}" if self.state == "failed" else self.state
        return f"Trial({self.id}: {value}, {state}, {self.config})"

    def copy(self) -> Trial:
        """A copy that can be changed without affecting the history."""
        return copy.deepcopy(self)


@dataclass(frozen=True)
class Round:
    """Trials that were decided together.

    Attributes:
        unseen: runs whose results the decision did not see.
        seconds: duration of the decision.
    """

    number: int
    size: int
    unseen: tuple[int, ...]
    time: float
    seconds: float


@dataclass(frozen=True)
class Repeating:
    """Number of additional trainings of each of the best ``top`` configs, with other seeds."""

    repeats: int = 0
    top: int = 3


def count_retries(runs: tuple[Run, ...]) -> Counter[str]:
    """How often runs were started again, by cause."""
    return sum((Counter(dict(run.retries)) for run in runs), Counter())
