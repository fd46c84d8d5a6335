"""Predictions against results."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from nasbo.history import History
from nasbo.methods import Suggestion
from nasbo.report.calibration import EXPECTED_COVERAGE, coverage, predictions, rank_correlation
from nasbo.search import Search


def _history(pairs: list[tuple[dict[str, Any], float]], mode: Literal["min", "max"]) -> History:
    search = Search("svm", method="random", mode=mode)
    rng = np.random.default_rng(0)
    suggestions = [Suggestion(search.space.sample(rng), "model", info) for info, _ in pairs]
    for trial, (_, value) in zip(search.add_round(suggestions, 1.0), pairs, strict=True):
        search.tell(trial, value)
    return search.history


def _info(score: float, sd: float = 1.0) -> dict[str, Any]:
    return {"predicted": score, "predicted_low": score - sd, "predicted_high": score + sd}


def test_predictions_are_in_values_whatever_the_mode() -> None:
    (one,) = predictions(_history([(_info(5.0), 5.5)], "max"))
    assert (one.low, one.median, one.high, one.is_inside) == (4.0, 5.0, 6.0, True)
    (one,) = predictions(_history([(_info(5.0), 6.5)], "min"))
    assert (one.low, one.median, one.high, one.is_inside) == (4.0, 5.0, 6.0, False)


def test_only_what_was_predicted_counts() -> None:
    infos = [{}, {"predicted": 1.0}, _info(float("nan")), {**_info(1.0), "predicted_low": None}]
    history = _history([(info, 1.0) for info in infos], "max")
    assert predictions(history) == []


def test_normal_errors_are_covered_as_they_should() -> None:
    rng = np.random.default_rng(0)
    means = rng.normal(size=400)
    pairs = [
        (_info(float(m)), float(m + e)) for m, e in zip(means, rng.normal(size=400), strict=True)
    ]
    found = predictions(_history(pairs, "max"))
    assert len(found) == 400
    assert coverage(found) == pytest.approx(EXPECTED_COVERAGE, abs=0.08)
    assert 0.5 < rank_correlation(found) < 0.9


def test_rank_correlation_of_order_and_of_constants() -> None:
    def correlation(values: list[float]) -> float:
        pairs = [(_info(float(place)), value) for place, value in enumerate(values)]
        return rank_correlation(predictions(_history(pairs, "max")))

    assert correlation([1.0, 10.0, 100.0]) == pytest.approx(1.0)
    assert correlation([3.0, 2.0, 1.0]) == pytest.approx(-1.0)
    assert correlation([1.0, 1.0, 1.0]) == 0.0
    # Ties share their mean rank, whatever their order: ranks 1, 2, 3, 4 against 2, 2, 2, 4.
    assert correlation([1.0, 1.0, 1.0, 2.0]) == pytest.approx(0.7745966692414834)
    assert correlation([1.0, 2.0, 2.0, 1.0]) == pytest.approx(0.0)
    assert correlation([1.0]) == 0.0
