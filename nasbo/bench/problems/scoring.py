"""Log-loss of a learner by repeated stratified cross-validation."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasbo.bench.problems.openml import Table

Array = NDArray[np.float64]
Folds = list[tuple[NDArray[np.int64], NDArray[np.int64]]]

N_FOLDS = 3
N_REPEATS = 2
LEAST_PROBABILITY = 1e-3


def log_loss(
    make_learner: Callable[[], Any], table: Table, splits: Iterable[int] = range(N_REPEATS)
) -> float:
    """Mean loss over all rows and splits, deterministic given its arguments.

    Args:
        make_learner: builds an unfitted scikit-learn classifier. One without probabilities but with
            a decision function is calibrated by Platt's sigmoid, fitted to the out-of-fold scores
            of the other folds. One that overflows on a fold gets the loss of chance.
        table: data of two classes.
        splits: seeds of the splits into folds; each is one repeat.
    """
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    with warnings.catch_warnings(), threadpool_limits(1):
        # Learners are stopped early on purpose, and bad settings are part of the problem.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        losses = [_one_repeat(make_learner, table, split) for split in splits]
    return float(np.mean(losses))


def _one_repeat(make_learner: Callable[[], Any], table: Table, split: int) -> float:
    from sklearn.model_selection import StratifiedKFold

    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=split)
    folds: Folds = list(splitter.split(table.features, table.labels))
    scores = np.empty(len(table.labels))
    for train, test in folds:
        learner = _fitted(make_learner(), Table(table.features[train], table.labels[train]))
        if learner is None:
            return math.log(2)
        has_probabilities = hasattr(learner, "predict_proba")
        scores[test] = (
            learner.predict_proba(table.features[test])[:, 1]
            if has_probabilities
            else learner.decision_function(table.features[test])
        )
    probabilities = scores if has_probabilities else _calibrated(scores, table.labels, folds)
    return _mean_loss(probabilities, table.labels)


def _fitted(learner: Any, rows: Table) -> Any | None:
    """The fitted learner; None if its numbers overflow (polynomials of raw features do)."""
    try:
        return learner.fit(rows.features, rows.labels)
    except ValueError as error:
        if "finite" not in str(error):
            raise
        return None


def _calibrated(scores: Array, labels: NDArray[np.int64], folds: Folds) -> Array:
    from sklearn.linear_model import LogisticRegression

    scaled = (scores - scores.mean()) / max(float(scores.std()), 1e-12)
    probabilities = np.empty(len(labels))
    for others, test in folds:
        sigmoid = LogisticRegression(C=100.0).fit(scaled[others, None], labels[others])
        probabilities[test] = sigmoid.predict_proba(scaled[test, None])[:, 1]
    return probabilities


def _mean_loss(probabilities: Array, labels: NDArray[np.int64]) -> float:
    safe = np.clip(probabilities, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    return float(-np.mean(np.where(labels == 1, np.log(safe), np.log1p(-safe))))
