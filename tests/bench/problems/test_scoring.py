"""Cross-validated log-loss: its scale, its folds, and scores that are not probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from nasbo.bench.problems.openml import Table
from nasbo.bench.problems.scoring import LEAST_PROBABILITY, N_FOLDS, N_REPEATS, log_loss


@pytest.fixture
def table() -> Table:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((240, 3))
    labels = (features[:, 0] + 0.7 * rng.standard_normal(240) > 0).astype(np.int64)
    return Table(features, labels)


def test_a_constant_guess_has_the_entropy_of_the_labels(table: Table) -> None:
    share = table.labels.mean()
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert log_loss(DummyClassifier, table) == pytest.approx(entropy, abs=1e-3)


def test_splits_are_repeats_that_can_be_chosen(table: Table) -> None:
    each = [log_loss(LogisticRegression, table, [split]) for split in range(N_REPEATS)]
    assert len(set(each)) == N_REPEATS
    assert log_loss(LogisticRegression, table) == pytest.approx(np.mean(each), rel=1e-12)
    assert log_loss(LogisticRegression, table, [2**31]) not in each


def test_sure_and_wrong_is_bounded(table: Table) -> None:
    class Wrong(DummyClassifier):  # type: ignore[misc]
        def predict_proba(self, X: Any) -> Any:
            sure = np.asarray(X)[:, 0] < 0
            return np.column_stack([~sure, sure]).astype(float)

    upside_down = Table(table.features, (table.features[:, 0] > 0).astype(np.int64))
    assert log_loss(Wrong, upside_down) == pytest.approx(-np.log(LEAST_PROBABILITY))


def test_every_fold_of_every_repeat_is_fitted_without_its_rows(table: Table) -> None:
    sizes: list[int] = []

    class Counting(DummyClassifier):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Any:
            sizes.append(len(y))
            return super().fit(X, y)

    log_loss(Counting, table)
    assert sizes == [160] * N_FOLDS * N_REPEATS


def test_a_margin_is_calibrated_to_about_a_probability(table: Table) -> None:
    by_margin = log_loss(lambda: SVC(kernel="linear"), table)
    by_probability = log_loss(LogisticRegression, table)
    assert by_margin == pytest.approx(by_probability, abs=0.03)


def test_a_learner_that_overflows_guesses_and_other_errors_are_not_hidden(table: Table) -> None:
    huge = Table(1e80 * table.features, table.labels)
    assert log_loss(lambda: SVC(kernel="poly", degree=4, gamma=1.0), huge) == pytest.approx(
        np.log(2)
    )
    with pytest.raises(ValueError, match="kernel"):
        log_loss(lambda: SVC(kernel="nonsense"), table)


def test_scores_without_meaning_cost_no_more_than_a_guess(table: Table) -> None:
    """A calibration that is fitted to its own test rows would look better than a guess."""
    shuffled = Table(table.features, np.random.default_rng(1).permutation(table.labels))
    assert log_loss(lambda: SVC(gamma=50.0), shuffled) > 0.68
