"""Scales, ticks and limits."""

from __future__ import annotations

import math

import pytest

from nasbo.report.axes import (
    Frame,
    Scale,
    limits,
    log_limits,
    number_text,
    step_points,
    value_limits,
)
from nasbo.report.drawing import Line, Words


def test_scale_maps_ends_and_clips() -> None:
    scale = Scale(10, 20, 100, 300)
    assert [scale(value) for value in (10, 15, 20, 5, 99)] == [100, 200, 300, 100, 300]
    upwards = Scale(0, 1, 300, 100)
    assert upwards(0.25) == 250
    assert Scale(2, 2, 0, 10)(2) == 5


def test_log_scale_puts_decades_at_equal_distances() -> None:
    scale = Scale(1, 1000, 0, 3, is_log=True)
    assert [round(scale(value), 9) for value in (1, 10, 100, 1000)] == [0, 1, 2, 3]
    assert scale(0) == 0


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (0.31, 0.52, [0.35, 0.4, 0.45, 0.5]),
        (-3, 3, [-2, 0, 2]),
        (5, 5, [5]),
    ],
)
def test_ticks_are_round_and_inside(low: float, high: float, ticks: list[float]) -> None:
    assert Scale(low, high, 0, 1).ticks() == pytest.approx(ticks)


@pytest.mark.parametrize("span", [1e-9, 0.013, 0.7, 3.3, 47, 1e6, 9e15])
def test_ticks_are_neither_too_few_nor_too_many(span: float) -> None:
    assert 2 <= len(Scale(1.0, 1.0 + span, 0, 1).ticks()) <= 6


def test_log_ticks() -> None:
    assert Scale(1e5, 1e9, 0, 1, True).ticks() == pytest.approx([1e5, 1e6, 1e7, 1e8, 1e9])
    assert Scale(1.5, 30, 0, 1, True).ticks() == pytest.approx([2, 5, 10, 20])
    assert len(Scale(1.1, 1.3, 0, 1, True).ticks()) >= 2


def test_limits_leave_room_and_are_never_equal() -> None:
    assert limits([0.0, 10.0]) == (-0.5, 10.5)
    for values in ([], [3.0], [0.0], [math.nan, math.inf]):
        low, high = limits(values)
        assert low < high
    low, high = log_limits([0.0, 5.0, 5.0])
    assert 0 < low < 5 < high


def test_terrible_values_do_not_squeeze_the_good_ones() -> None:
    values = [0.1 * index for index in range(10)]
    low, high = value_limits([*values, 1e6], "min")
    assert low < 0
    assert high < 10
    low, high = value_limits([*values, -1e6], "max")
    assert low > -10
    assert high > 0.9
    assert value_limits([*values, 1e6], "max")[1] > 1e6


def test_frame_draws_a_grid_line_and_words_per_tick() -> None:
    x, y = Scale(0, 4, 50, 450), Scale(0, 1, 300, 20)
    shapes = Frame(x, y, "across", "up").shapes()
    words = [shape.text for shape in shapes if isinstance(shape, Words)]
    assert {"0", "0.2", "1", "4", "across", "up"} <= set(words)
    grid = [shape for shape in shapes if isinstance(shape, Line) and shape.color == "grid"]
    assert len(grid) == len(y.ticks())
    assert [w for w in Frame(x, y).shapes(False, False) if isinstance(w, Words)] == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.45123, "0.4512"), (1234.0, "1234"), (25_000.0, "25k"), (3.2e6, "3.2M"),
     (5e9, "5G"), (3e-5, "3e-05"), (-0.5, "-0.5"), (1e-15, "0"), (1e20, "1e+20")],
)  # fmt: skip
def test_numbers_in_few_characters(value: float, text: str) -> None:
    assert number_text(value) == text


def test_steps_have_corners_where_the_curve_changes() -> None:
    x, y = Scale(0, 10, 0, 100), Scale(0, 10, 0, 100)
    nan = math.nan
    assert step_points([*enumerate([nan, 5.0, 5.0, 5.0, 3.0, 3.0], start=1)], x, y) == [
        (20, 50), (50, 50), (50, 30), (60, 30),
    ]  # fmt: skip
    assert step_points([(1, nan), (2, nan)], x, y) == []
    assert step_points([(1, 7.0)], x, y) == [(10, 70)]
