"""Objectives: the only module that knows whether smaller or larger values are better."""

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
"""Criterion of ranking: estimates of noise-free values, if any, or observed values."""
Array = NDArray[np.float64]
UNNAMED = "value"


@dataclass(frozen=True)
class Objective:
    """A metric to be minimised or maximised."""

    metric: str = UNNAMED
    mode: Mode = "min"

    def __post_init__(self) -> None:
        if self.mode not in ("min", "max"):
            raise NasboError(f"mode must be 'min' or 'max', got {self.mode!r}")

    def score(self, value: float) -> float:
        """Convert a value to a score (larger is better), or a score back to a value."""
        return value if self.mode == "max" else -value


@dataclass(frozen=True)
class Objectives:
    """Objectives of a search; at present one.

    Scores are larger for better values. Only methods and surrogates use them.
    """

    objectives: tuple[Objective, ...] = (Objective(),)

    @staticmethod
    def of(mode: Mode | Objectives, metric: str | None = None) -> Objectives:
        """Objectives of a search for one metric."""
        if isinstance(mode, Objectives):
            return mode
        return Objectives((Objective(metric or UNNAMED, mode),))

    @staticmethod
    def from_json(plain: Iterable[Mapping[str, Any]]) -> Objectives:
        """Parse objectives from the plain values of ``to_json``."""
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
        """Scores of a trial, shape (m,); ``None`` if it has no value.

        Args:
            trial: of this search.
            step: step of its training; by default the end.
        """
        value = trial.value if step is None else trial.value_at(step)
        return None if value is None else np.array([self.first.score(value)])

    def is_better(self, value: float, other: float | None) -> bool:
        """Whether a value of the first objective is better than another
        one, or there is no other.
        """
        return other is None or self.first.score(value) > self.first.score(other)

    def ranked(self, trials: Iterable[Trial], by: By = "estimate") -> list[Trial]:
        """The trials that have a value, best first; ties go to the earlier trial.

        Values at different steps are not compared: as long as no trial was trained in full, only
        the trials that paused or were stopped at the highest step are ranked.

        Args:
            trials: of one search.
            by: ``estimate`` ranks trials with an estimate of their noise-free value first, by its
                mean; trials without an estimate follow, by observed value (only the best 32 have
                one). ``observed`` ranks by values alone.
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
        """The trials that no other one dominates; with one objective those of the best value."""
        ranked = self.ranked(trials)
        return [trial for trial in ranked if trial.expected == ranked[0].expected]


def _furthest(trials: Iterable[Trial]) -> list[Trial]:
    """The trials that paused or were stopped at the highest step."""
    held = [trial for trial in trials if trial.state != "failed" or trial.cause == "stopped"]
    found = [(trial, trial.partial.step) for trial in held if trial.partial is not None]
    highest = max((step for _, step in found), default=0)
    return [trial for trial, step in found if step == highest]
