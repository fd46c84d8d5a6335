"""Trust regions, rebuilt by replaying the scores in order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nasbo.acquisition.optimise import Region
from nasbo.space import Config, Parameter, Space, Subspace
from nasbo.space.neighbours import Values, complete, values_of

Array = NDArray[np.float64]

MOVED_NUMBERS = 20
"""Mean number of numeric parameters that are drawn anew; all of them in smaller spaces."""
SLACK = 1e-9
"""Levels further than this outside the box are replaced by the centre's."""


@dataclass(frozen=True)
class Rules:
    """How a trust region grows and shrinks; the defaults are those of the authors' code.

    Attributes:
        n_choices: choices of the space, structural ones included; an upper bound of the radius.
        success_tolerance: successes in a row before it grows.
        failure_tolerance: failures in a row before it shrinks.
        n_start: configs at the start of a run that do not count as successes or failures.
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


@dataclass
class Run:
    """A local search between two restarts.

    Attributes:
        length: side of the box of the numbers, in the unit cube.
        radius: how many choices may differ from the best config.
        best: its best score so far.
        rows: indices of its scores, in order.
    """

    length: float
    radius: int
    best: float = -math.inf
    successes: int = 0
    failures: int = 0
    rows: tuple[int, ...] = ()

    def count(self, score: float, rules: Rules) -> None:
        """Update the region after a success or failure."""
        is_success = score >= self.best + rules.margin * abs(self.best)
        self.successes = self.successes + 1 if is_success else 0
        self.failures = 0 if is_success else self.failures + 1
        if self.successes == rules.success_tolerance:
            radius = min(int(self.radius * rules.factor), rules.radius_max, rules.n_choices)
            self.radius, self.successes = max(radius, self.radius), 0
            self.length = min(self.length * rules.factor, rules.length_max)
        elif self.failures == rules.failure_tolerance:
            self.radius, self.failures = int(self.radius / rules.factor), 0
            self.length = self.length / rules.factor


def replay(
    scores: Sequence[float], rules: Rules, owners: Sequence[int | None] | None = None
) -> list[Run]:
    """All runs, the present one last, as the scores have shaped them.

    Args:
        scores: larger is better.
        rules: how regions grow and shrink.
        owners: index of the run that suggested each config, ``None`` if no run did. A score that
            arrives after the end of its run still belongs to it and starts no new run. An index
            after the present run means that the present region had no untried config left.
    """
    runs = [begin(rules)]
    for at, score in enumerate(scores):
        owner = owners[at] if owners is not None else None
        while owner is not None and owner >= len(runs):
            runs.append(begin(rules))
        run = runs[-1 if owner is None else owner]
        if run is runs[-1] and len(run.rows) >= rules.n_start:
            run.count(score, rules)
        run.best, run.rows = max(run.best, score), (*run.rows, at)
        if runs[-1].length < rules.length_min or (rules.n_choices and runs[-1].radius < 1):
            runs.append(begin(rules))
    return runs


def begin(rules: Rules) -> Run:
    """A new run without scores."""
    radius = min(rules.radius_start, rules.radius_max, rules.n_choices)
    return Run(rules.length_start, radius)


def count_choices(space: Space) -> int:
    """Number of choices and structural parameters with several levels, by name and list index."""
    return len({(n.parameter.name, n.key[1]) for n in space.nodes if _is_choice(n.parameter)})


def _is_choice(parameter: Parameter) -> bool:
    return (parameter.is_structural or not parameter.is_ordered) and parameter.n_levels > 1


class TrustRegion:
    """Configs near a centre: a box for the numbers, a Hamming ball for the choices.

    It spans the active parameters of the centre, across subspaces: a change of a structural value
        counts as one change, and parameters that exist only under the new value are free. A region
        per subspace would need results in each of them, which spaces with thousands never have.

    Args:
        space: the search space.
        centre: the best config.
        length: side of the box.
        radius: how many choices may differ.
        weights: of the box' sides, by the parameters of the centre's subspace, shape (n_free,); all
            equal if not given.
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
        self._choices = [one for one in self.subspace.coordinates if _is_choice(one.parameter)]
        weights = np.ones(len(self.subspace.free)) if weights is None else weights
        self._weights = dict(zip(self._parameters, map(float, weights), strict=True))
        self._home = self.region(self.subspace)

    def sample(self, rng: Generator) -> Config:
        """A random config: some choices changed, numbers drawn inside the box."""
        values: Values = dict(self.centre)
        n = int(rng.integers(min(self.radius, len(self._choices)) + 1))
        for at in rng.permutation(len(self._choices))[:n]:
            coordinate = self._choices[at]
            values[coordinate.name, coordinate.index] = coordinate.parameter.sample(rng)
        free = self.subspace.free
        numbers = [at for at, one in enumerate(free) if one.parameter.is_ordered]
        for at in numbers:
            if rng.random() < MOVED_NUMBERS / len(numbers):
                low, high = self._home.low[at], self._home.high[at]
                value = free[at].parameter.from_unit(low + (high - low) * float(rng.random()))
                if low - SLACK <= free[at].parameter.to_unit(value) <= high + SLACK:
                    values[free[at].name, free[at].index] = value
        return complete(self.space, values, rng)

    def rows(self, n: int, rng: Generator) -> Array:
        """Random rows of the centre's own subspace, with its structural values: (n, n_free)."""
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
        """The part of a subspace that lies inside the region."""
        low, high = np.zeros(subspace.n_free), np.ones(subspace.n_free)
        centre = np.zeros(subspace.n_free)
        counted = []
        for column, coordinate in enumerate(subspace.free):
            key = coordinate.name, coordinate.index
            if self._parameters.get(key) != coordinate.parameter:
                continue  # exists only after a structural change
            centre[column] = coordinate.parameter.to_unit(self.centre[key])
            if not coordinate.parameter.is_ordered:
                counted.append(column)
            else:
                reach = 0.5 * self.length * self._weights[key]
                low[column] = max(centre[column] - reach, 0.0)
                high[column] = min(centre[column] + reach, 1.0)
        fixed = {(s.name, s.index): s.value for s in subspace.coordinates if s.is_fixed}
        used = sum(value != self.centre.get(key, value) for key, value in fixed.items())
        return Region(low, high, centre, np.array(counted, dtype=np.intp), self.radius - used)
