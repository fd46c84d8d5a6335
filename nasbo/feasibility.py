"""Failing regions: parts of a space in which every config fails.

A config that crashes, runs out of memory or diverges may be an exception, but not if all configs of
a part of the space do. Three kinds of parts are considered: a subspace, a value of a choice, and a
number above or below a threshold. A part is set aside if none of its configs has finished and the
probability of that many failures, at the failure rate of the rest, is below ``SIGNIFICANCE`` after
a Bonferroni correction for the number of parts. Failures are explained by one part at a time, the
most significant first, so that a parameter is not blamed for the failures of a branch.

Methods suggest no configs from a region that is set aside, except for probes: one of its configs is
tried again after 4 rounds, then 8, 16 and so on. A probe that finishes ends the region.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from nasbo.history import Trial, View
from nasbo.space import Config, Subspace, Value
from nasbo.space.kinds import Listed
from nasbo.space.parameter import plain_text, value_key

MIN_FAILURES = 3
SIGNIFICANCE = 0.05
FIRST_PROBE = 4
"""Rounds until a region is probed; doubled after each probe."""


@dataclass(frozen=True)
class Point:
    """A config as conditions use it: its subspace, and its choices and numbers by label."""

    subspace: int
    subspace_id: str
    choices: dict[str, Value]
    numbers: dict[str, float]

    @staticmethod
    def of(subspace: Subspace, config: Config) -> Point:
        choices: dict[str, Value] = {}
        numbers: dict[str, Any] = {}
        for coordinate in subspace.coordinates:
            is_listed = isinstance(coordinate.parameter, Listed)
            (choices if is_listed else numbers)[coordinate.label] = coordinate.value_in(config)
        return Point(subspace.index, subspace.id, choices, numbers)


@dataclass(frozen=True)
class Condition:
    """A part of the space.

    Attributes:
        relation: the subspace, a choice (``=``) or a comparison with a number.
        label: label of the parameter, e.g. ``kernel_size[2]``, or id of the subspace.
        value: value of the parameter, or index of the subspace.
    """

    relation: Literal["subspace", "=", ">=", "<="]
    label: str
    value: Any

    def __str__(self) -> str:
        if self.relation == "subspace":
            return f"subspace {self.label}"
        return f"{self.label} {self.relation} {plain_text(self.value)}"

    def holds(self, point: Point) -> bool:
        """Whether a config is in this part."""
        if self.relation == "subspace":
            return bool(point.subspace == self.value)
        if self.relation == "=":
            known = self.label in point.choices
            return known and value_key(point.choices[self.label]) == value_key(self.value)
        number = point.numbers.get(self.label)
        if number is None:
            return False
        return bool(number >= self.value if self.relation == ">=" else number <= self.value)


@dataclass(frozen=True)
class Region:
    """A failing region.

    Attributes:
        condition: which configs belong to it.
        failed: its trials, all of which failed.
        last_round: last round in which one of its configs was suggested.
        n_probes: number of its trials that were probes.
    """

    condition: Condition
    failed: tuple[Trial, ...]
    last_round: int
    n_probes: int

    def __str__(self) -> str:
        causes = Counter(str(trial.cause) for trial in self.failed)
        told = ", ".join(f"{cause} {n}" for cause, n in causes.items())
        return f"{self.condition}: all {len(self.failed)} configs failed ({told})"

    @property
    def next_probe(self) -> int:
        """The round in which one of its configs is tried again."""
        return self.last_round + (FIRST_PROBE << self.n_probes)

    def contains(self, subspace: Subspace, config: Config) -> bool:
        """Whether a config belongs to it."""
        return self.condition.holds(Point.of(subspace, config))


def failing_regions(history: View) -> list[Region]:
    """The regions to set aside, the most significant first."""
    failed = [t for t in history.trials if t.first.ending is not None and t.first.ending.blames]
    finished = [t for t in history.trials if t.value is not None]
    if len(failed) < MIN_FAILURES or not finished:
        return []
    points = {t.id: Point.of(history.subspace(t), t.config) for t in history.trials}
    evidence = _Evidence(
        {trial.id: points[trial.id] for trial in failed},
        [points[trial.id] for trial in finished],
    )
    by_id = {trial.id: trial for trial in failed}
    return [
        _region(condition, [by_id[number] for number in numbers], points, history)
        for condition, numbers in evidence.explain()
    ]


def _region(
    condition: Condition, failed: list[Trial], points: dict[int, Point], history: View
) -> Region:
    inside = [trial for trial in history.trials if condition.holds(points[trial.id])]
    last = max(trial.round for trial in inside)
    n_probes = sum(trial.source == "probe" for trial in inside)
    return Region(condition, tuple(failed), last, n_probes)


@dataclass
class _Evidence:
    """Failed configs by trial number, and finished configs."""

    failed: dict[int, Point]
    finished: list[Point]

    def explain(self) -> Iterator[tuple[Condition, list[int]]]:
        """Conditions that explain failures, each with the numbers of the
        trials that it explains.
        """
        n_parts = self._count_parts()
        while len(self.failed) >= MIN_FAILURES:
            candidates = list(self._candidates())
            if not candidates:
                return
            condition, numbers = min(candidates, key=lambda found: self._chance(found[1]))
            if self._chance(numbers) * n_parts > SIGNIFICANCE:
                return
            yield condition, numbers
            self.failed = {n: p for n, p in self.failed.items() if n not in numbers}

    def _chance(self, numbers: list[int]) -> float:
        """Probability of as many failures at the failure rate outside.

        Other subspaces that fail as a whole are excluded from that rate.
        """
        if len(numbers) < MIN_FAILURES:
            return 1.0
        inside = set(numbers)
        outside = [point.subspace for n, point in self.failed.items() if n not in inside]
        dead = {s for s, n in Counter(outside).items() if n >= MIN_FAILURES}
        dead -= {point.subspace for point in self.finished}
        n_failed = sum(subspace not in dead for subspace in outside)
        rate = (n_failed + 1) / (n_failed + len(self.finished) + 2)
        return float(rate ** len(numbers))

    def _candidates(self) -> Iterator[tuple[Condition, list[int]]]:
        """The largest parts of each kind without a finished config."""
        for condition in dict.fromkeys(self._conditions()):
            if not any(condition.holds(point) for point in self.finished):
                yield condition, [n for n, p in self.failed.items() if condition.holds(p)]

    def _conditions(self) -> Iterator[Condition]:
        points = list(self.failed.values())
        for point in points:
            yield Condition("subspace", point.subspace_id, point.subspace)
        for point in points:
            yield from (Condition("=", label, value) for label, value in point.choices.items())
        for label in dict.fromkeys(label for point in points for label in point.numbers):
            yield from self._half_lines(label)

    def _half_lines(self, label: str) -> Iterator[Condition]:
        """Thresholds: numbers of failures above, or below, all finished configs."""
        failed = [p.numbers[label] for p in self.failed.values() if label in p.numbers]
        finished = [p.numbers[label] for p in self.finished if label in p.numbers]
        if above := [value for value in failed if value > max(finished, default=-math.inf)]:
            yield Condition(">=", label, min(above))
        if below := [value for value in failed if value < min(finished, default=math.inf)]:
            yield Condition("<=", label, max(below))

    def _count_parts(self) -> int:
        """Number of parts that could have been blamed."""
        points = (*self.failed.values(), *self.finished)
        subspaces = {point.subspace for point in points}
        choices = {(name, value_key(v)) for point in points for name, v in point.choices.items()}
        numbers = {name for point in points for name in point.numbers}
        return len(subspaces) + len(choices) + 2 * len(numbers)
