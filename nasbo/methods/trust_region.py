"""Trust region that the scores lead to, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nasbo.acquisition.optimise import Region
from nasbo.space import Config, Parameter, Space, Subspace
from nasbo.space.neighbours import Values, complete, values_of

Array = NDArray[np.float64]

MOVED_NUMBERS = 20
"""So many numbers of a config are drawn anew in the mean; all where there are fewer."""
SLACK = 1e-9
"""Levels that are further outside the box than this give way to the centre's."""


@dataclass(frozen=True)
class Rules:
    """How a trust region grows and shrinks; the numbers of the authors' public code.

    Attributes:
        n_choices: choices of the space, structural ones included: no radius is larger.
        success_tolerance: successes in a row before it grows.
        failure_tolerance: failures in a row before it shrinks.
        n_start: configs that begin a run, without counting.
    """

    n_choices: int
    success_tolerance: int = 3
    failure_tolerance: int = 40
    n_start: int = 8
    factor: float = 1.5
    length_start: float = 0.8
    length_min: float = 0.5**7
    length_max: float = 1.6
    radius_start: int = 20
    radius_max: int = 30
    margin: float = 1e-3


@dataclass(frozen=True)
class Run:
    """A local search between two restarts.

    Attributes:
        length: side of the box of the numbers, in the unit cube.
        radius: how many choices may differ from the best config.
        best: its best score so far, ``None`` before the first.
        rows: places of its scores, in order.
    """

    length: float
    radius: int
    best: float | None = None
    successes: int = 0
    failures: int = 0
    rows: tuple[int, ...] = ()


def replay(
    scores: Sequence[float], rules: Rules, owners: Sequence[int | None] | None = None
) -> list[Run]:
    """All runs, the present one last, as the scores have shaped them.

    Args:
        scores: larger is better.
        rules: how regions grow and shrink.
        owners: number of the run that suggested each of them, ``None`` where none did. What a run
            has suggested and only comes in after its end is still its own, and begins no new one.
            A run that follows the present one says that nothing untried was left in its region.
    """
    runs = [begin(rules)]
    for at, score in enumerate(scores):
        owner = owners[at] if owners is not None else None
        if owner is not None and owner < len(runs) - 1:
            runs[owner] = _with_row(runs[owner], score, at)
            continue
        while owner is not None and owner >= len(runs):
            runs.append(begin(rules))
        runs[-1] = _after(runs[-1], score, at, rules)
        is_gone = runs[-1].length < rules.length_min or (rules.n_choices and runs[-1].radius < 1)
        if is_gone:
            runs.append(begin(rules))
    return runs


def begin(rules: Rules) -> Run:
    """A run without scores."""
    radius = min(rules.radius_start, rules.radius_max, rules.n_choices)
    return Run(rules.length_start, radius)


def _with_row(run: Run, score: float, at: int) -> Run:
    best = score if run.best is None else max(run.best, score)
    return replace(run, best=best, rows=(*run.rows, at))


def _after(run: Run, score: float, at: int, rules: Rules) -> Run:
    before, run = run, _with_row(run, score, at)
    if before.best is None or len(before.rows) < rules.n_start:
        return run
    is_success = score >= before.best + rules.margin * abs(before.best)
    run = replace(
        run,
        successes=run.successes + 1 if is_success else 0,
        failures=0 if is_success else run.failures + 1,
    )
    if run.successes == rules.success_tolerance:
        radius = min(int(run.radius * rules.factor), rules.radius_max, rules.n_choices)
        length = min(run.length * rules.factor, rules.length_max)
        return replace(run, length=length, radius=max(radius, run.radius), successes=0)
    if run.failures == rules.failure_tolerance:
        radius, length = int(run.radius / rules.factor), run.length / rules.factor
        return replace(run, length=length, radius=radius, failures=0)
    return run


def count_choices(space: Space) -> int:
    """Choices and structural parameters of several levels, each name and place in a list once."""
    return len({(n.parameter.name, n.key[1]) for n in space.nodes if _is_choice(n.parameter)})


def _is_choice(parameter: Parameter) -> bool:
    return (parameter.is_structural or not parameter.is_ordered) and parameter.n_levels > 1


class TrustRegion:
    """Configs near a centre: a box for the numbers, a Hamming ball for the choices.

    It goes over the active parameters of the centre, whatever the subspace: changing a structural
    value is one change like any other, and what exists only under the new value is free. A region
    per subspace would need results in each of them, which spaces with thousands never have.

    Args:
        space: where.
        centre: the best config.
        length: side of the box.
        radius: how many choices may differ.
        weights: of the box' sides, by the parameters of the centre's subspace, shape (n_free,); all
            are equal where none are given.
    """

    def __init__(
        self,
        space: Space,
        centre: Config,
        length: float,
        radius: int,
        weights: Array | None = None,
    ) -> None:
        self.space, self.length, self.radius = space, length, radius
        self.config = centre
        self.subspace = space.subspace_of(centre)
        self.centre = values_of(self.subspace, centre)
        self._parameters = {(s.name, s.index): s.parameter for s in self.subspace.free}
        self._choices = [slot for slot in self.subspace.slots if _is_choice(slot.parameter)]
        weights = np.ones(len(self.subspace.free)) if weights is None else weights
        self._weights = dict(zip(self._parameters, map(float, weights), strict=True))
        self._home = self.region(self.subspace)

    def weighted(self, weights: Array) -> TrustRegion:
        """The same with other weights of the box' sides, shape (n_free,)."""
        return TrustRegion(self.space, self.config, self.length, self.radius, weights)

    def n_changes(self, subspace: Subspace, config: Config) -> int:
        """Choices of the centre that the config has too, with another value."""
        values = values_of(subspace, config)
        keys = [(slot.name, slot.index) for slot in self._choices]
        return sum(key in values and values[key] != self.centre[key] for key in keys)

    def sample(self, rng: Generator) -> Config:
        """A config with some choices changed and numbers drawn inside the box."""
        values: Values = dict(self.centre)
        n = int(rng.integers(min(self.radius, len(self._choices)) + 1))
        for at in rng.permutation(len(self._choices))[:n]:
            slot = self._choices[at]
            values[slot.name, slot.index] = slot.parameter.sample(rng)
        free = self.subspace.free
        numbers = [at for at, slot in enumerate(free) if slot.parameter.is_ordered]
        for at in numbers:
            if rng.random() < MOVED_NUMBERS / len(numbers):
                low, high = self._home.low[at], self._home.high[at]
                value = free[at].parameter.from_unit(low + (high - low) * float(rng.random()))
                if low - SLACK <= free[at].parameter.to_unit(value) <= high + SLACK:
                    values[free[at].name, free[at].index] = value
        return complete(self.space, values, rng)

    def rows(self, n: int, rng: Generator) -> Array:
        """The same within the centre's own subspace, structural values kept: (n, n_free)."""
        free = self.subspace.free
        low, high, here = self._home.low, self._home.high, self._home.centre
        is_choice = ~self.subspace.is_ordered
        n_choices, shape = int(is_choice.sum()), (n, len(free))
        changes = rng.integers(min(self.radius, n_choices) + 1, size=(n, 1))
        ranks = np.where(is_choice, rng.random(shape), 2.0).argsort(1).argsort(1)
        choices = np.where(ranks < changes, self.subspace.sample(n, rng), here)
        is_moved = rng.random(shape) < MOVED_NUMBERS / max(len(free) - n_choices, 1)
        numbers = np.where(is_moved, low + (high - low) * rng.random(shape), here)
        x = self.subspace.snap(np.where(is_choice, choices, numbers))
        return np.where((x < low - SLACK) | (x > high + SLACK), here, x)

    def region(self, subspace: Subspace) -> Region:
        """The part of a subspace that lies inside."""
        low, high = np.zeros(subspace.n_free), np.ones(subspace.n_free)
        centre = np.zeros(subspace.n_free)
        counted = []
        for column, slot in enumerate(subspace.free):
            key = slot.name, slot.index
            if self._parameters.get(key) != slot.parameter:
                continue  # it came into being with a structural change
            centre[column] = slot.parameter.to_unit(self.centre[key])
            if not slot.parameter.is_ordered:
                counted.append(column)
            else:
                reach = 0.5 * self.length * self._weights[key]
                low[column] = max(centre[column] - reach, 0.0)
                high[column] = min(centre[column] + reach, 1.0)
        used = self._n_structural_changes(subspace)
        return Region(low, high, centre, np.array(counted, dtype=np.intp), self.radius - used)

    def _n_structural_changes(self, subspace: Subspace) -> int:
        fixed = {(s.name, s.index): s.value for s in subspace.slots if s.is_fixed}
        return sum(value != self.centre.get(key, value) for key, value in fixed.items())
