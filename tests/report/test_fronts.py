"""Report of a sweep of several objectives: the front, its hypervolume, and the gauges."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasbo.report.drawing import Dot, Line
from nasbo.report.figures import FRONT_FIGURES, figures_of
from nasbo.report.study import NoDataError, Study, key_of, open_study
from nasbo.report.write import make_page
from nasbo.tune.metrics import course_samples
from tests.fronts import make_folder
from tests.report.sample import make_folder as make_plain


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return open_study(make_folder(tmp_path_factory.mktemp("front") / "sweep"))


def test_the_front_comes_first(study: Study) -> None:
    assert list(figures_of(study))[:3] == ["pareto", "hypervolume", "best-so-far"]


def test_dots_on_the_front_are_those_of_the_history(study: Study) -> None:
    figure = figures_of(study)["pareto"](study)
    assert figure.drawing is not None
    assert not figure.is_wide, "one panel, for the one further objective"
    dots = [one for one in figure.drawing.shapes if isinstance(one, Dot)]
    on_front = {one.key for one in dots if one.color == "c6" and one.key}
    assert on_front == {key_of(trial) for trial in study.history.front}
    assert len({one.key for one in dots if one.key}) == len(study.valued)
    assert f"one of the {len(on_front)} trials on the front, whose hypervolume" in figure.caption


def test_hypervolume_is_drawn_over_the_trials(study: Study) -> None:
    figure = FRONT_FIGURES["hypervolume"](study)
    assert figure.drawing is not None
    (curve,) = (s for s in figure.drawing.shapes if isinstance(s, Line) and s.color == "ink")
    heights = [height for _, height in curve.points]
    assert heights == sorted(heights, reverse=True), "it only grows, upwards on the page"
    assert heights[-1] < heights[0]
    assert "flops on a logarithmic scale" in figure.caption


def test_the_page_has_both(study: Study) -> None:
    page = make_page(study)
    names = [figure.name for figure in page.figures]
    assert names[:2] == ["pareto", "hypervolume"]
    assert len(set(names)) == len(names)


def test_one_objective_has_no_hypervolume(tmp_path: Path, study: Study) -> None:
    plain = open_study(make_plain(tmp_path / "plain"))
    assert "hypervolume" not in figures_of(plain)
    with pytest.raises(NoDataError, match="the sweep has one objective"):
        FRONT_FIGURES["hypervolume"](plain)
    assert "nasbo_hypervolume" not in {name for name, *_ in course_samples(plain.history)}


def test_gauges_have_the_hypervolume(study: Study) -> None:
    found = {name: value for name, value, _ in course_samples(study.history)}
    assert found["nasbo_hypervolume"] == pytest.approx(study.history.hypervolume_so_far()[-1])
    assert found["nasbo_front_trials"] == len(study.history.front)
