"""Objectives: the only module that knows whether smaller or larger values are better."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from nasbo.errors import NasboError, shorten
from nasbo.history.endings import Ending
from nasbo.history.expression import parse_expression
from nasbo.history.front import Reference, hypervolume, on_front, straight

if TYPE_CHECKING:
    from nasbo.history.records import Trial

Mode = Literal["min", "max"]
By = Literal["estimate", "observed"]
"""Criterion of ranking: estimates of noise-free values, if any, or observed values."""
Array = NDArray[np.float64]
UNNAMED = "value"
MAX_OBJECTIVES = 3
_TEXT = re.compile(r"\s*(\S.*?)\s+(min|max)\s*", re.DOTALL)


@dataclass(frozen=True)
class Objective:
    """A metric to be minimised or maximised.

    Attributes:
        metric: name of a number, or an expression of several.
        mode: whether it is to be small or large.
        is_known: whether it is known before a training.
    """

    metric: str = UNNAMED
    mode: Mode = "min"
    is_known: bool = False

    def __post_init__(self) -> None:
        if self.mode not in ("min", "max"):
            raise NasboError(f"mode must be 'min' or 'max', got {self.mode!r}")

    @staticmethod
    def parse(text: str) -> Objective:
        """Parse ``flops min``.

        Raises:
            NasboError: the metric or the mode is missing, or an expression is wrong.
        """
        match = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise NasboError(f"an objective must be like 'flops min', got {shorten(text)}")
        objective = Objective(match[1], "max" if match[2] == "max" else "min")
        if objective.is_expression:  # an error is told at the door
            parse_expression(objective.metric)
        return objective

    def __str__(self) -> str:
        return f"{self.metric} {self.mode}"

    @property
    def is_expression(self) -> bool:
        """Whether the metric is computed from others: ``val/acc`` and ``top-1`` are names."""
        return re.search(r"[\s*()]", self.metric) is not None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers that the metric is made of."""
        if not self.is_expression:
            return (self.metric,)
        try:
            return parse_expression(self.metric).names
        except NasboError:  # a name such as "top 1"
            return (self.metric,)

    def value_in(self, numbers: Mapping[str, Any]) -> float | None:
        """The value from numbers by name; ``None`` if one is missing or is no number."""
        found = numbers.get(self.metric)
        if found is not None and _is_number(found):
            return float(found)
        needed = {name: numbers.get(name) for name in self.names}
        if self.metric in needed or not all(map(_is_number, needed.values())):
            return None
        return parse_expression(self.metric)(needed)  # type: ignore[arg-type]

    def score(self, value: float) -> float:
        """Convert a value to a score (larger is better), or a score back to a value."""
        return value if self.mode == "max" else -value

    def to_json(self) -> dict[str, Any]:
        """The objective as plain values."""
        plain: dict[str, Any] = {"metric": self.metric, "mode": self.mode}
        return {**plain, "is_known": True} if self.is_known else plain


@dataclass(frozen=True)
class Objectives:
    """One to three objectives of a search, of which the first one is trained.

    Scores are larger for better values. Only methods and surrogates use them. The value of a trial
    is that of the first objective; those of the others are among the trial's metrics.
    """

    objectives: tuple[Objective, ...] = (Objective(),)

    def __post_init__(self) -> None:
        n, names = len(self.objectives), [one.metric for one in self.objectives]
        if not 1 <= n <= MAX_OBJECTIVES:
            raise NasboError(
                f"there must be one to {MAX_OBJECTIVES} objectives, got {n}: make the less "
                "important ones constraints, or one expression such as 'accuracy * flops ** -0.1'"
            )
        if len(set(names)) < n:
            raise NasboError(f"objectives must be different, got {', '.join(names)}")

    @staticmethod
    def of(mode: Mode | Objectives, metric: str | None = None) -> Objectives:
        """Objectives of a search for one metric."""
        if isinstance(mode, Objectives):
            return mode
        return Objectives((Objective(metric or UNNAMED, mode),))

    @staticmethod
    def parse(texts: Objectives | str | Sequence[str], known: Iterable[str] = ()) -> Objectives:
        """Parse texts such as ``["val_accuracy max", "flops min"]``.

        Args:
            texts: of the objectives.
            known: names of the numbers that are known before a training.

        Raises:
            NasboError: a text is wrong, there are too many, or the first one is known.
        """
        there = set(known)
        if isinstance(texts, Objectives):
            return texts.with_known(there)
        if not isinstance(texts, str | list | tuple):
            raise NasboError(f"objectives must be a list of texts, got {shorten(texts)}")
        parsed = map(Objective.parse, [texts] if isinstance(texts, str) else texts)
        return Objectives(tuple(parsed)).with_known(there)

    def with_known(self, names: Set[str]) -> Objectives:
        """The objectives, of which those made of these names are known before a training."""
        return Objectives(tuple(replace(o, is_known=names >= set(o.names)) for o in self))

    @staticmethod
    def from_json(plain: Iterable[Mapping[str, Any]]) -> Objectives:
        """Parse objectives from the plain values of ``to_json``."""
        return Objectives(
            tuple(Objective(o["metric"], o["mode"], bool(o.get("is_known"))) for o in plain)
        )

    def to_json(self) -> tuple[dict[str, Any], ...]:
        """The objectives as plain values."""
        return tuple(one.to_json() for one in self)

    def __iter__(self) -> Iterator[Objective]:
        return iter(self.objectives)

    def __len__(self) -> int:
        return len(self.objectives)

    def __str__(self) -> str:
        return ", ".join(map(str, self))

    @property
    def first(self) -> Objective:
        return self.objectives[0]

    @property
    def further(self) -> tuple[Objective, ...]:
        """The objectives behind the first one."""
        return self.objectives[1:]

    @property
    def n_trained(self) -> int:
        """How many of them are results of training."""
        return sum(not one.is_known for one in self)

    def require_trained(self) -> Objectives:
        """Raise unless the first objective is trained."""
        if self.first.is_known:
            raise NasboError(
                f"the first objective must be a result of training, but {self.first.metric!r} is "
                "known before it"
            )
        return self

    def lacking(self, metrics: Mapping[str, Any]) -> list[str]:
        """The objectives behind the first one that metrics do not tell."""
        return [one.metric for one in self.further if one.value_in(metrics) is None]

    def values(self, trial: Trial, by: By = "estimate") -> tuple[float, ...] | None:
        """Values of a trial, one per objective; ``None`` if one of them is not known.

        With ``estimate`` the first is the estimate of the noise-free value, if there is one.
        """
        first = trial.value if by == "observed" or trial.value is None else trial.expected
        others = [_mean_of(one, trial) for one in self.further]
        found = [first, *others]
        known = [value for value in found if value is not None and math.isfinite(value)]
        return tuple(known) if len(known) == len(found) else None

    def scores(self, trial: Trial, step: int | None = None) -> Array | None:
        """Scores of a trial, shape (m,); ``None`` if it has no value.

        Args:
            trial: of this search.
            step: step of its training; by default the end.
        """
        if step is None:
            values = None if trial.value is None else self.values(trial, "observed")
        else:
            numbers = {one.step: one.metrics for one in trial.first.measurements}.get(step, {})
            found = [trial.value_at(step), *(one.value_in(numbers) for one in self.further)]
            values = None if None in found else tuple(found)  # type: ignore[arg-type]
        if values is None:
            return None
        return np.array([one.score(value) for one, value in zip(self, values, strict=True)])

    def is_better(self, value: float, other: float | None) -> bool:
        """Whether a value of the first objective is better than another
        one, or there is no other.
        """
        return other is None or self.first.score(value) > self.first.score(other)

    def ranked(self, trials: Iterable[Trial], by: By = "estimate") -> list[Trial]:
        """The trials that have a value, best first; ties go to the earlier trial.

        Several objectives are ranked by the first one. Values at different steps are not compared:
        as long as no trial was trained in full, only the trials that paused or were stopped at the
        highest step are ranked.

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

    def front(self, trials: Iterable[Trial], by: By = "estimate") -> list[Trial]:
        """The trials that no other one dominates, the best value of the first objective first.

        With one objective these are the trials of the best value.
        """
        ranked = self.ranked(trials, by)
        if len(self) == 1:
            return [trial for trial in ranked if trial.expected == ranked[0].expected]
        pairs = [(trial, self.values(trial, by)) for trial in ranked]
        known = [(trial, values) for trial, values in pairs if values is not None]
        if not known:
            return []
        scores = self.to_scores(np.array([values for _, values in known]))
        kept = on_front(scores)
        chosen = [
            (-row[0], trial)
            for row, (trial, _), is_in in zip(scores, known, kept, strict=True)
            if is_in
        ]
        return [trial for _, trial in sorted(chosen, key=lambda one: (one[0], one[1].id))]

    def to_scores(self, values: Array, reference: Reference | None = None) -> Array:
        """Scores of values, shape (n, m); with a reference point on its scale."""
        if reference is not None:
            values = straight(values, reference.is_log)
        signs = np.array([one.score(1.0) for one in self])
        return np.asarray(values * signs)

    def hypervolume(self, trials: Iterable[Trial], reference: Reference) -> float:
        """Hypervolume of the trials' front above a reference point, on its scale."""
        known = [self.values(trial) for trial in trials if trial.is_comparable]
        found = [one for one in known if one is not None]
        values = np.array(found).reshape(len(found), len(self))
        scores = self.to_scores(values, reference)
        worst = self.to_scores(np.array([reference.values]), reference)[0]
        return hypervolume(scores[on_front(scores)], worst)

    def hypervolumes(self, trials: Iterable[Trial], reference: Reference) -> list[float]:
        """Hypervolume above a reference point, on its scale, after each of the trials."""
        worst = self.to_scores(np.array([reference.values]), reference)[0]
        front, volumes = np.zeros((0, len(self))), [0.0]
        for trial in trials:
            values = self.values(trial) if trial.is_comparable else None
            if values is None:
                volumes.append(volumes[-1])
                continue
            row = self.to_scores(np.array([values]), reference)
            if (front >= row).all(1).any():
                volumes.append(volumes[-1])
                continue
            front = np.vstack([front, row])
            front = front[on_front(front)]
            volumes.append(hypervolume(front, worst))
        return volumes[1:]


def _mean_of(objective: Objective, trial: Trial) -> float | None:
    """Mean of an objective behind the first one, over the finished runs of a trial."""
    runs = [run for run in trial.runs if run.ending is Ending.FINISHED] or [trial.first]
    found = [objective.value_in(run.metrics) for run in runs]
    known = [value for value in found if value is not None]
    return fmean(known) if known else None


def _is_number(value: Any) -> bool:
    """Whether a value is a number, also one of NumPy or torch; text is none."""
    if isinstance(value, str | bytes | bool):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _furthest(trials: Iterable[Trial]) -> list[Trial]:
    """The trials that paused or were stopped at the highest step."""
    held = [trial for trial in trials if trial.state != "failed" or trial.cause == "stopped"]
    found = [(trial, trial.partial.step) for trial in held if trial.partial is not None]
    highest = max((step for _, step in found), default=0)
    return [trial for trial, step in found if step == highest]
