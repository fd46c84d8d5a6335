"""Training data of surrogates: rows of configs with their scores."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nasbo.history.records import Trial
from nasbo.space import Space, Subspace

Array = NDArray[np.float64]
Allows = Callable[[Subspace, Array], bool]


class Earlier(NamedTuple):
    """Earlier values of configs, from before their last one.

    Attributes:
        row: index of the row that each value belongs to, shape (k,).
        step: step of each value, as a fraction of a full training, shape (k,).
        y: scores of the first objective, larger is better, shape (k,).
    """

    row: NDArray[np.intp]
    step: Array
    y: Array

    @staticmethod
    def none() -> Earlier:
        return Earlier(np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class Data:
    """Configs that have a score, as rows in the order in which they were suggested.

    Attributes:
        space: the space that all rows belong to.
        subspaces: the subspace of each row.
        x: each row in its subspace's unit cube, shape (n_free,) each.
        y: scores, larger is better, shape (n, m); shape (n,) is converted to (n, 1).
        n_design: number of leading rows that belong to the initial design.
        allows: whether a row of a subspace is inside the limits of the search; ``None`` if there
            are no limits.
        step: how far each row was trained, as a fraction of a full training, shape (n,).
        task: 0 for rows of this search, 1, 2, ... for those of past ones, shape (n,).
        n_values: number of trainings that each row's score is the mean of, shape (n,); default
            ones.
        spread: sum of squared deviations of these trainings' scores of the first objective from
            their mean, shape (n,); zeros by default.
        earlier: values of the rows before the last one; by default none.
    """

    space: Space
    subspaces: Sequence[Subspace]
    x: Sequence[Array]
    y: Array
    n_design: int = 0
    allows: Allows | None = None
    step: Array = field(default_factory=lambda: np.zeros(0))
    task: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    n_values: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    spread: Array = field(default_factory=lambda: np.zeros(0))
    earlier: Earlier = field(default_factory=Earlier.none)

    def __post_init__(self) -> None:
        n, y = len(self.y), np.asarray(self.y, dtype=np.float64)
        object.__setattr__(self, "y", y[:, None] if y.ndim == 1 else y)
        if len(self.step) != n:
            object.__setattr__(self, "step", np.ones(n))
        if len(self.task) != n:
            object.__setattr__(self, "task", np.zeros(n, dtype=np.intp))
        if len(self.n_values) != n:
            object.__setattr__(self, "n_values", np.ones(n, dtype=np.intp))
        if len(self.spread) != n:
            object.__setattr__(self, "spread", np.zeros(n))

    @staticmethod
    def of_trials(
        space: Space, rows: Sequence[tuple[Trial, float]], allows: Allows | None = None
    ) -> Data:
        """Data of trials and their scores, from ``History.rows``."""
        is_design = (trial.source in ("design", "observed") for trial, _ in rows)
        subspaces = [space.subspace(trial.subspace) for trial, _ in rows]
        values = [_own_values(trial) for trial, _ in rows]
        return Data(
            space=space,
            subspaces=subspaces,
            x=[s.encode(trial.config) for s, (trial, _) in zip(subspaces, rows, strict=True)],
            y=np.array([score for _, score in rows], dtype=np.float64),
            n_design=sum(1 for _ in itertools.takewhile(bool, is_design)),
            allows=allows,
            n_values=np.array([max(1, len(some)) for some in values], dtype=np.intp),
            spread=np.array([_spread(some) for some in values], dtype=np.float64),
        )

    def with_curves(
        self, steps: Sequence[float], earlier: Sequence[tuple[int, float, float]]
    ) -> Data:
        """Copy with the steps of its rows, and (row, step, score) of their earlier values."""
        rows, at, y = zip(*earlier, strict=True) if earlier else ((), (), ())
        values = Earlier(np.array(rows, dtype=np.intp), np.array(at, float), np.array(y, float))
        return replace(self, step=np.array(steps, dtype=np.float64), earlier=values)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def scores(self) -> Array:
        """Scores of the first objective, shape (n,)."""
        scores: Array = self.y[:, 0]
        return scores

    def take(self, rows: Sequence[int]) -> Data:
        """Some of the rows, in the order given."""
        at = np.array(rows, dtype=np.intp)
        place = {int(row): number for number, row in enumerate(at)}
        kept = [k for k, row in enumerate(self.earlier.row) if int(row) in place]
        own = np.array([place[int(row)] for row in self.earlier.row[kept]], dtype=np.intp)
        return replace(
            self,
            subspaces=[self.subspaces[row] for row in at],
            x=[self.x[row] for row in at],
            y=self.y[at],
            n_design=sum(row < self.n_design for row in at),
            step=self.step[at],
            task=self.task[at],
            n_values=self.n_values[at],
            spread=self.spread[at],
            earlier=Earlier(own, self.earlier.step[kept], self.earlier.y[kept]),
        )


def _own_values(trial: Trial) -> tuple[float, ...]:
    """Values of a trial's own trainings, if its score is their mean.

    Empty for a twin: its trainings count for the other trial.
    """
    is_mean = trial.twin is None and trial.value is not None and math.isfinite(trial.value)
    return trial.values if is_mean else ()


def _spread(values: Sequence[float]) -> float:
    """Sum of squared deviations from the mean, equal for values and scores."""
    return float(np.square(np.array(values) - np.mean(values)).sum()) if len(values) > 1 else 0.0
