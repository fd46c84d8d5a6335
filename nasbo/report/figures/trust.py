"""Calibration figure: predictions of the surrogate against results."""

from __future__ import annotations

from nasbo.report.axes import Frame, Scale, beyond_text, number_text, value_limits
from nasbo.report.calibration import (
    EXPECTED_COVERAGE,
    MIN_POINTS,
    Prediction,
    correlation_interval,
    coverage_interval,
    n_inside,
    predictions,
    rank_correlation,
)
from nasbo.report.drawing import Dot, Drawing, Line, Shape, legend
from nasbo.report.study import Figure, NoDataError, Study, key_of

WIDTH, HEIGHT = 560.0, 380.0


def draw_calibration(study: Study) -> Figure:
    """Results against predictions with intervals; a perfect prediction is on the diagonal."""
    found = _drawn(study)
    if not found:
        raise NoDataError("no finished trial has a prediction of its value in the journal")
    every = [prediction for one in study.together for prediction in _drawn(one)]
    shown = [one.value for one in every] + [one.median for one in every]
    low, high = value_limits(shown, study.mode)
    x = Scale(low, high, 70, WIDTH - 20)
    y = Scale(low, high, HEIGHT - 56, 56)
    drawing = Drawing(WIDTH, HEIGHT)
    drawing.extend(Frame(x, y, f"predicted {study.metric}", f"{study.metric} that came").shapes())
    drawing.add(Line([(x(low), y(low)), (x(high), y(high))], "muted", 1.2, is_dashed=True))
    opacity = 0.4 if len(found) <= 100 else 0.12
    for one in found:
        drawing.extend(_mark(study, one, x, y, opacity))
    entries = [("within one standard deviation", "c1"), ("outside", "c6")]
    drawing.extend(legend(entries, 70, 16, WIDTH - 90))
    caption = _caption(found) + _beyond(found, (low, high)) + study.in_full
    return Figure("calibration", "Predictions and results", caption, drawing)


def _drawn(study: Study) -> list[Prediction]:
    return [one for one in predictions(study.history) if one.trial.id in study.drawn]


def _mark(study: Study, one: Prediction, x: Scale, y: Scale, opacity: float) -> list[Shape]:
    color = "c1" if one.is_inside else "c6"
    level = y(one.value)
    span = f"{number_text(one.low)} … {number_text(one.high)}"
    words = f"{study.words(one.trial)}\npredicted {number_text(one.median)} ({span})"
    return [
        Line([(x(one.low), level), (x(one.high), level)], color, 1.0, opacity),
        Dot(x(one.median), level, 4, color, 0.85, words, key_of(one.trial)),
    ]


def _caption(found: list[Prediction]) -> str:
    n = len(found)
    told = f"{n:,} result{'s' * (n > 1)}, each predicted from those before it."
    if n < MIN_POINTS:
        return f"{told} These are too few to say how far the predictions can be trusted."
    low, high = coverage_interval(found)
    return (
        f"{told} {n_inside(found):,} of {n:,} lie within one standard deviation (between {low:.0%} "
        f"and {high:.0%} at 95% confidence; {EXPECTED_COVERAGE:.0%} would be right; training "
        f"noise is not part of the prediction); {_order_words(found)}. Configs are chosen where "
        "the model is hopeful, so results tend to fall on its bad side."
    )


def _beyond(found: list[Prediction], ends: tuple[float, float]) -> str:
    """Sentences about marks that are clipped at the ends of the axes."""
    n = sum(one.low < ends[0] or one.high > ends[1] for one in found)
    words = f" {n:,} interval{'s' * (n > 1)} reach{'es' * (n == 1)} beyond the axis." if n else ""
    return beyond_text([at for one in found for at in (one.value, one.median)], ends) + words


def _order_words(found: list[Prediction]) -> str:
    if len({one.median for one in found}) == 1 or len({one.value for one in found}) == 1:
        return "predictions or results are all the same, so there is no order to compare"
    correlation = rank_correlation(found)
    low, high = correlation_interval(correlation, len(found))
    return (
        f"the rank correlation of prediction and result is {correlation:.2f} (between {low:.2f} "
        f"and {high:.2f})"
    )
