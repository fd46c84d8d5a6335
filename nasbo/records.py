"""Trials, their attempts, rounds, and the causes by which trials end."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from nasbo.space import Config

Mode = Literal["min", "max"]
Source = Literal["design", "model", "probe", "fallback", "observed", "repeat"]
State = Literal["waiting", "running", "finished", "failed"]

CAUSES = (
    "diverged",
    "invalid",
    "oom",
    "crashed",
    "killed",
    "lost",
    "timeout",
    "stopped",
    "no result",
)
TEACHING_CAUSES = ("diverged", "invalid")
"""Endings that say something about the config itself: the surrogate sees the worst score so far.
A ``stopped`` trial counts with the value it had; all other causes are left out."""
PREDICTION = ("predicted", "predicted_low", "predicted_high")
"""Keys of a trial's info: the predicted value and its interval of one standard deviation."""


def config_key(config: Mapping[str, Any]) -> str:
    """A text that two configs share exactly if they are equal."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class Attempt:
    """One run of a trial; ``end`` is ``None`` while it runs."""

    start: float
    end: float | None = None


@dataclass
class Trial:
    """One config and what became of it.

    ``value`` is the mean of ``values``: the trial's own, then those of its repeats. ``repeat_of``
    is set for a repeat itself: the number of the trial whose config is trained again with another
    seed. ``same_as`` is set where the result was taken over from a trial of the same network.
    ``started_at`` is the first start. What the trial cost is the time of its ``attempts``: between
    them it waited, or there was no driver.
    """

    id: int
    config: Config
    subspace: int
    source: Source
    round: int = 0
    info: dict[str, Any] = field(default_factory=dict)
    state: State = "waiting"
    value: float | None = None
    values: list[float] = field(default_factory=list)
    repeat_of: int | None = None
    same_as: int | None = None
    cause: str | None = None
    message: str = ""
    step: int = 0
    attempts: list[Attempt] = field(default_factory=list)
    retries: Counter[str] = field(default_factory=Counter)
    metrics: dict[str, Any] = field(default_factory=dict)
    curve: list[tuple[int, float]] = field(default_factory=list)
    suggested_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None

    @property
    def is_open(self) -> bool:
        """Handed out, or queued, and not ended."""
        return self.state in ("waiting", "running")

    @property
    def current(self) -> Attempt | None:
        """The attempt that runs."""
        is_running = bool(self.attempts) and self.attempts[-1].end is None
        return self.attempts[-1] if is_running else None

    @property
    def seconds(self) -> float:
        """How long the attempts that have ended took together."""
        return sum(one.end - one.start for one in self.attempts if one.end is not None)

    def spans(self, now: float) -> list[tuple[float, float]]:
        """Start and end of each attempt; the one that runs reaches until ``now``."""
        ends = (now if one.end is None else one.end for one in self.attempts)
        return [(o.start, max(o.start, end)) for o, end in zip(self.attempts, ends, strict=True)]

    def begin_attempt(self, time: float) -> None:
        """Note that the trial runs, again or for the first time."""
        self.attempts = [*self.attempts, Attempt(time)]

    def end_attempt(self, time: float) -> None:
        """Note when the last attempt ended; what was known of its end before does not count."""
        *before, last = self.attempts
        self.attempts = [*before, Attempt(last.start, max(last.start, time))]

    def copy(self) -> Trial:
        """A copy whose config can be changed without harm to the history."""
        return replace(self, config=copy.deepcopy(self.config))


@dataclass(frozen=True)
class Round:
    """A set of trials that were decided together."""

    number: int
    size: int
    unseen: tuple[int, ...]
    time: float
    seconds: float


@dataclass(frozen=True)
class Repeating:
    """How many more times the best ``top`` configs are trained, with other seeds."""

    repeats: int = 0
    top: int = 3
