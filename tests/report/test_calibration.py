"""Predictions against results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from scipy.stats import spearmanr

from nasbo.history import History
from nasbo.methods import Suggestion
from nasbo.report.calibration import (
    EXPECTED_COVERAGE,
    Prediction,
    correlation_interval,
    coverage,
    coverage_interval,
    predictions,
    rank_correlation,
)
from nasbo.report.figures.trust import draw_calibration
from nasbo.report.study import Study, open_study
from nasbo.search import Search
from tests.report.sample import make_folder


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
        pairs = [(_info(float(index)), value) for index, value in enumerate(values)]
        return rank_correlation(predictions(_history(pairs, "max")))

    assert correlation([1.0, 10.0, 100.0]) == pytest.approx(1.0)
    assert correlation([3.0, 2.0, 1.0]) == pytest.approx(-1.0)
    assert correlation([1.0, 1.0, 1.0]) == 0.0
    # Ties share their mean rank, whatever their order: ranks 1, 2, 3, 4 against 2, 2, 2, 4.
    assert correlation([1.0, 1.0, 1.0, 2.0]) == pytest.approx(0.7745966692414834)
    assert correlation([1.0, 2.0, 2.0, 1.0]) == pytest.approx(0.0)
    assert correlation([1.0]) == 0.0


def _points(n: int, n_inside: int) -> list[Prediction]:
    trial = Search("svm", method="random").ask(1)[0]
    return [Prediction(trial, 0.0 if at < n_inside else 9.0, 0.0, -1.0, 1.0) for at in range(n)]


@pytest.mark.parametrize(
    ("n", "n_inside", "ends"),
    [(8, 8, (0.676, 1.0)), (8, 0, (0.0, 0.324)), (100, 68, (0.583, 0.763))],
)
def test_coverage_of_few_results_is_not_known_well(
    n: int, n_inside: int, ends: tuple[float, float]
) -> None:
    assert coverage_interval(_points(n, n_inside)) == pytest.approx(ends, abs=0.001)


@pytest.mark.parametrize("n", [5, 8, 100])
def test_interval_of_a_rank_correlation(n: int) -> None:
    for correlation in (-1.0, -0.4, 0.0, 0.7, 1.0):
        low, high = correlation_interval(correlation, n)
        assert -1 <= low <= correlation <= high <= 1
        assert (-high, -low) == pytest.approx(correlation_interval(-correlation, n))
    assert correlation_interval(1.0, n)[0] < 1.0


def test_interval_of_a_rank_correlation_holds_the_truth() -> None:
    """Of normal pairs with correlation 0.6: Spearman's is 6 / pi * asin(0.3)."""
    rng = np.random.default_rng(0)
    truth, n_held = 6 / np.pi * np.arcsin(0.3), 0
    for _ in range(200):
        x, noise = rng.normal(size=(2, 12))
        y = 0.6 * x + 0.8 * noise
        low, high = correlation_interval(float(spearmanr(x, y).statistic), 12)
        n_held += low <= truth <= high
    assert 184 <= n_held <= 198


def _caption(folder: Path, n: int, step: float = 0.01) -> str:
    study: Study = open_study(make_folder(folder, n, "svm"))
    for trial in study.history.trials:
        if trial.info:
            trial.info["predicted"] += step * trial.id
    return draw_calibration(study).caption


def test_the_page_says_how_sure_it_is(tmp_path: Path) -> None:
    """Eight of the first sixteen trials are from the design, and one of the others fails."""
    caption = _caption(tmp_path / "some", 16)
    assert "7 results, each predicted" in caption
    assert "of 7 lie within one standard deviation (between " in caption
    assert "at 95% confidence; 68% would be right" in caption
    number = r"-?\d\.\d\d"
    assert re.search(rf"result is {number} \(between {number} and {number}\)", caption)
    assert "no order to compare" in _caption(tmp_path / "same", 16, step=0.0)


def test_the_page_gives_no_shares_of_four_results(tmp_path: Path) -> None:
    caption = _caption(tmp_path / "few", 12)
    assert "%" not in caption
    assert "too few" in caption


def test_what_the_axes_do_not_reach_is_said(tmp_path: Path) -> None:
    study = open_study(make_folder(tmp_path / "s", 24, "svm"))
    assert "beyond the axis" not in draw_calibration(study).caption
    last = predictions(study.history)[-1].trial
    assert study.mode == "max"
    last.info["predicted"], last.info["predicted_low"] = -1e6, -2e6
    caption = draw_calibration(study).caption
    assert "1 worse value lies beyond the axis and is drawn at its end." in caption
    assert "1 interval reaches beyond the axis." in caption
