"""What a method is told of several objectives: scores of all of them, and the reference point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nasbo.gp.known_values import KnownValues
from nasbo.gp.transform import cut_depths
from nasbo.history import History, Objectives, Reference, Trial, View
from nasbo.history.front import straight
from nasbo.space import Subspace

Array = NDArray[np.float64]

LEAST_DESIGN = 10
"""Least size of the design for several objectives: the reference point comes from it."""


@dataclass(frozen=True)
class Front:
    """Scores of several objectives, larger is better; costs are taken as their logarithms.

    Attributes:
        objectives: of the search.
        reference: its reference point.
        scores: of the rows, shape (n, m).
        known: the objectives that are known before a training; ``None`` if there are none.
    """

    objectives: Objectives
    reference: Reference
    scores: Array
    known: KnownValues | None = None

    @property
    def worst(self) -> Array:
        """Scores of the reference point, shape (m,)."""
        values = np.array([self.reference.values])
        worst: Array = self.objectives.to_scores(values, self.reference)[0]
        return worst

    @property
    def trained_columns(self) -> list[int]:
        return [at for at, one in enumerate(self.objectives) if not one.is_known]

    @property
    def known_columns(self) -> list[int]:
        return [at for at, one in enumerate(self.objectives) if one.is_known]

    def known_scores(self, subspace: Subspace, x: Array) -> Array:
        """Scores of the known objectives, shape (n, n_known), of rows of shape (n, n_free)."""
        assert self.known is not None
        columns = self.known_columns
        values = straight(
            self.known.columns(subspace, x), [self.reference.is_log[at] for at in columns]
        )
        signs = [self.objectives.objectives[at].score(1.0) for at in columns]
        scores = np.asarray(values * np.array(signs))
        return np.where(np.isfinite(scores), scores, self.worst[columns])


def front_of(
    history: View, rows: Sequence[tuple[Trial, float]], known: KnownValues | None
) -> Front | None:
    """The scores of a history's rows; ``None`` for one objective or before there are results.

    A row without a result, from which the worst is learned, has the worst score in each trained
    objective.
    """
    if len(history.objectives) == 1 or not rows:
        return None
    reference = history.reference or reference_of(history, known)
    if reference is None:
        return None
    objectives = history.objectives
    table = np.full((len(rows), len(objectives)), np.nan)
    for at, (trial, _) in enumerate(rows):
        found = [one.value_in(trial.metrics) for one in objectives.further]
        is_own = trial.value is not None and None not in found
        values = objectives.values(trial, "observed") if is_own else None
        if values is not None:
            table[at] = values
        if known is not None:
            columns = [j for j, one in enumerate(objectives) if one.is_known]
            table[at, columns] = known.of_config(trial.config)
    scores = objectives.to_scores(table, reference)
    scores[:, 0] = [score for _, score in rows]
    return Front(objectives, reference, _filled(scores), known)


def _filled(scores: Array) -> Array:
    """Scores with the worst of its column for each that is missing."""
    worst = [np.nanmin(column) if np.isfinite(column).any() else 0.0 for column in scores.T]
    return np.where(np.isfinite(scores), scores, np.array(worst))


def reference_of(history: View, known: KnownValues | None) -> Reference | None:
    """The worst kept value of each objective; ``None`` without finite values of each.

    Of results, the very bad ones are cut off as for the surrogate. The range of known objectives
    needs no training: it is that of random configs.
    """
    objectives = history.objectives
    trials = [trial for trial in history.trials if trial.is_comparable]
    found = [objectives.values(trial, "observed") for trial in trials if trial.value is not None]
    values = np.array([one for one in found if one is not None]).reshape(-1, len(objectives))
    if not len(values):
        return None
    usual = None if known is None else known.drawn(history.space)
    worst, is_log, at_known = [], [], 0
    for at, one in enumerate(objectives):
        column = values[:, at]
        if one.is_known and usual is not None:
            column, at_known = np.concatenate([column, usual[:, at_known]]), at_known + 1
        column = column[np.isfinite(column)]
        if not len(column):
            return None
        scores = one.score(1.0) * column
        kept = scores if one.is_known else cut_depths(scores, len(scores))
        worst.append(one.score(float(kept.min())))
        is_log.append(one.is_known and one.mode == "min" and bool((column > 0).all()))
    return Reference(tuple(worst), tuple(is_log))


def is_reference_due(history: History, n_design_left: int) -> bool:
    """Whether the design has ended, so that the reference point can be set."""
    if len(history.objectives) == 1 or history.reference is not None or n_design_left:
        return False
    return not any(trial.is_open for trial in history.trials if trial.source == "design")
