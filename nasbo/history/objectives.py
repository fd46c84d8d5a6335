"""Objectives: the one module that knows whether smaller or larger values are better."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from nasbo.errors import NasboError

if TYPE_CHECKING:
    from nasbo.history.records import Trial

Mode = Literal["min", "max"]
By = Literal["estimate", "observed"]
"""What trials are ranked by: estimates of noise-free values where there are some, or values."""
Array = NDArray[np.float64]
UNNAMED = "value"


@dataclass(frozen=True)
class Objective:
    """A metric that is to be small or large."""

    metric: str = UNNAMED
    mode: Mode = "min"

    def __post_init__(self) -> None:
        if self.mode not in ("min", "max"):
            raise NasboError(f"mode must be 'min' or 'max', got {self.mode!r}")

    def score(self, value: float) -> float:
        """The score, larger is better, of a value; its own inverse: also the value of a score."""
        return value if self.mode == "max" else -value


@dataclass(frozen=True)
class Objectives:
    """What a search is after; at present one objective.

    Scores are larger where values are better, and only methods and surrogates see them.
    """

    objectives: tuple[Objective, ...] = (Objective(),)

    @staticmethod
    def of(mode: Mode | Objectives, metric: str | None = None) -> Objectives:
        """The objectives of a search for one metric."""
        if isinstance(mode, Objectives):
            return mode
        return Objectives((Objective(metric or UNNAMED, mode),))

    @staticmethod
    def from_json(plain: Iterable[Mapping[str, Any]]) -> Objectives:
        """The objectives of plain values, as ``to_json`` gives them."""
        return Objectives(tuple(Objective(one["metric"], one["mode"]) for one in plain))

    def to_json(self) -> tuple[dict[str, str], ...]:
        """The objectives as plain values."""
        return tuple({"metric": one.metric, "mode": one.mode} for one in self)

    def __iter__(self) -> Iterator[Objective]:
        return iter(self.objectives)

    def __len__(self) -> int:
        return len(self.objectives)

    @property
    def first(self) -> Objective:
        return self.objectives[0]

    def scores(self, trial: Trial, step: int | None = None) -> Array | None:
        """A trial's scores, shape (m,); ``None`` where it has no value.

        Args:
            trial: of this search.
            step: at which step of its training; default at its end.
        """
        value = trial.value if step is None else trial.value_at(step)
        return None if value is None else np.array([self.first.score(value)])

    def is_better(self, value: float, other: float | None) -> bool:
        """Whether a value of the first objective beats another one, or none."""
        return other is None or self.first.score(value) > self.first.score(other)

    def ranked(self, trials: Iterable[Trial], by: By = "estimate") -> list[Trial]:
        """The trials that have a value, the best first; earlier trials first among equals.

        Values at different steps are not compared: as long as no trial has been trained in full,
        these are the trials that paused or were stopped last of all, at the highest step.

        Args:
            trials: of one search.
            by: ``estimate`` puts those with an estimate of their noise-free value first, by its
                mean: the others were worse when the search last looked, or no noise was found.
                ``observed`` goes by the values alone.
        """
        if by not in ("estimate", "observed"):
            raise NasboError(f"by must be 'estimate' or 'observed', got {by!r}")
        known = [trial for trial in trials if trial.is_comparable]
        valued = [trial for trial in known if trial.value is not None] or _furthest(known)

        def place(trial: Trial) -> tuple[bool, float, int]:
            is_behind = by == "observed" or trial.estimate is None
            value = trial.last_value if is_behind else trial.expected
            return is_behind, -self.first.score(value or 0.0), trial.id

        return sorted(valued, key=place)

    def front(self, trials: Iterable[Trial]) -> list[Trial]:
        """The trials that no other one beats; with one objective those of the best value."""
        ranked = self.ranked(trials)
        return [trial for trial in ranked if trial.expected == ranked[0].expected]


def _furthest(trials: Iterable[Trial]) -> list[Trial]:
    """The trials that paused or were stopped at the highest step of all."""
    held = [trial for trial in trials if trial.state != "failed" or trial.cause == "stopped"]
    found = [(trial, trial.partial.step) for trial in held if trial.partial is not None]
    highest = max((step for _, step in found), default=0)
    return [trial for trial, step in found if step == highest]
