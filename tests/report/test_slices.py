"""Slices in the report: dots, the model's mean and its band, and what is said without a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasbo.report.drawing import Area, Dot, Line, Words
from nasbo.report.figures.slices import MAX_PANELS, WIDTH, draw_slices
from nasbo.report.study import Study, key_of, open_study
from tests.report.sample import make_folder


def test_a_panel_has_a_dot_per_trial_and_the_model(study: Study) -> None:
    figure = draw_slices(study)
    assert next(iter(figure.panels)) == "learning_rate"
    assert len(figure.panels) == MAX_PANELS
    shapes = figure.panels["learning_rate"].shapes
    dots = [one for one in shapes if isinstance(one, Dot)]
    assert {dot.key for dot in dots} == {key_of(trial) for trial in study.valued}
    (band,) = (one for one in shapes if isinstance(one, Area))
    (mean,) = (one for one in shapes if isinstance(one, Line) and one.width == 1.8)
    lows, highs = band.points[: len(mean.points)], band.points[len(mean.points) :][::-1]
    for (_, low), (_, middle), (_, high) in zip(lows, mean.points, highs, strict=True):
        assert low >= middle >= high  # up is smaller
    assert "The model was fitted on 22 results" in figure.caption
    # The values are 0.5 + learning_rate: the mean must rise with it.
    assert mean.points[0][1] - mean.points[-1][1] > 100


def test_the_ring_is_the_trial_that_the_slice_goes_through(study: Study) -> None:
    shapes = draw_slices(study).panels["learning_rate"].shapes
    (ring,) = (one for one in shapes if isinstance(one, Dot) and one.color == "ink")
    assert ring.key == key_of(study.ranked[0])
    (mean,) = (one for one in shapes if isinstance(one, Line) and one.width == 1.8)
    nearest = min(mean.points, key=lambda point: abs(point[0] - ring.x))
    assert ring.y == pytest.approx(nearest[1], abs=12.0)


def test_without_a_model_dots_stay(tmp_path: Path) -> None:
    study = open_study(make_folder(tmp_path / "run", 24, "svm", method="random"))
    figure = draw_slices(study)
    assert "There is no line of a model: the method has no surrogate" in figure.caption
    shapes = [shape for panel in figure.panels.values() for shape in panel.shapes]
    assert not [one for one in shapes if isinstance(one, Area)]
    assert [one for one in shapes if isinstance(one, Dot)]


def test_choices_have_a_mark_each_and_words_stay_inside(tmp_path: Path) -> None:
    study = open_study(make_folder(tmp_path / "run", 30, "cash"))
    panels = draw_slices(study).panels
    shapes = panels["kernel"].shapes
    assert sum(isinstance(one, Area) for one in shapes) == 4
    for panel in panels.values():
        for one in panel.shapes:
            if isinstance(one, Words) and one.anchor == "middle":
                assert one.x + 3.5 * len(one.text) <= WIDTH
