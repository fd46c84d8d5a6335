"""Comparison page of several sweeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nasbo.cli import cli
from nasbo.errors import NasboError
from nasbo.methods import Suggestion
from nasbo.report.compare import COMPARISONS, by_setup, make_comparison, write_comparison
from nasbo.report.drawing import Box, Drawing, Line, Words
from nasbo.report.page import Page, to_html
from nasbo.report.panels import PANELS, draw_panels, set_beside, split_captions
from nasbo.report.study import Figure, Study, open_study
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import create_folder
from nasbo.sweeps.settings import make_sweep
from tests.report.sample import make_folder, make_interrupted

WITHOUT_NETWORKS = [name for name in PANELS if name != "architectures"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("compare")
    return [
        make_folder(root / f"{method}{seed}", 12 + 4 * seed, "svm", method=method, seed=seed)
        for method in ("attnbo", "random")
        for seed in (0, 1)
    ]


def _names(page: Page) -> list[str]:
    return [figure.name for figure in page.figures]


def test_page_of_methods_and_seeds(folders: list[Path]) -> None:
    page = make_comparison([open_study(folder) for folder in folders])
    assert _names(page) == [*COMPARISONS, *WITHOUT_NETWORKS, "sweeps"]
    ((name, why),) = page.left_out
    assert name == "architectures"
    assert why.startswith("the trainer own:train cannot be had here")
    curves = page.figures[0].drawing
    assert curves is not None
    lines = [shape for shape in curves.shapes if isinstance(shape, Line) and shape.label]
    assert len(lines) == 6
    assert sum(line.label.startswith("median of 2") for line in lines) == 2
    assert {line.color for line in lines} == {"c1", "c2"}
    for folder in folders:
        assert f"<td>{folder.name}</td>" in page.figures[-1].html


def test_seeds_of_a_method_are_one_setup(folders: list[Path]) -> None:
    studies = [open_study(folder) for folder in folders]
    assert by_setup(studies) == {"attnbo": studies[:2], "random": studies[2:]}
    assert make_comparison(studies).warning == ""


def test_options_of_a_method_make_it_another(folders: list[Path], tmp_path: Path) -> None:
    options = {"acquisition": "thompson"}
    other = make_folder(tmp_path / "o", 12, "svm", method="attnbo", method_options=options)
    studies = [open_study(folder) for folder in (*folders, other)]
    assert list(by_setup(studies)) == ["attnbo", "random", "attnbo[acquisition=thompson]"]
    assert _medians(studies) == ["median of 2 sweeps by attnbo", "median of 2 sweeps by random"]


def _medians(studies: list[Study]) -> list[str]:
    curves = make_comparison(studies).figures[0].drawing
    assert curves is not None
    return [s.label for s in curves.shapes if isinstance(s, Line) and "median" in s.label]


@pytest.mark.parametrize(
    ("settings", "name", "column"),
    [
        ({"trainer": "my:train"}, "attnbo · my:train", "trainer"),
        ({"trainer_options": {"epochs": 3}}, "attnbo · epochs=3", "trainer options"),
        ({"provenance": {"sha256": "abc"}}, "attnbo · sha256=abc", "data"),
        ({"constraints": ["params <= 1e6"]}, "attnbo · params <= 1e6", "constraints"),
        ({"batch": 2}, "attnbo · batch=2", "batch"),
        ({"schedule": "async"}, "attnbo · schedule=async", "schedule"),
    ],
)
def test_only_the_seed_may_differ_within_a_median(
    folders: list[Path], tmp_path: Path, settings: dict[str, Any], name: str, column: str
) -> None:
    other = make_folder(tmp_path / "o", 12, "svm", **settings)
    studies = [open_study(folder) for folder in (folders[0], folders[1], other)]
    first, second = by_setup(studies)
    assert second == name
    assert first == {"trainer": "attnbo · own:train", "schedule": "attnbo · schedule=round"}.get(
        column, "attnbo"
    )
    assert _medians(studies) == [f"median of 2 sweeps by {first}"]
    page = make_comparison(studies)
    assert f"<th>{column}</th>" in page.figures[-1].html
    makes_values = column in ("trainer", "trainer options", "data")
    words = f"The sweeps differ in {column}: their values may not be comparable."
    assert page.warning == (words if makes_values else "")
    assert (words in to_html(page)) == makes_values


def test_names_tell_no_more_than_is_needed(tmp_path: Path) -> None:
    given: list[dict[str, Any]] = [
        {"trainer": "my:train", "trainer_options": {"epochs": 3, "data": "a"}},
        {"trainer": "my:train", "trainer_options": {"epochs": 9, "data": "b"}},
        {"trainer": "other:train", "trainer_options": {"epochs": 3, "data": "a"}, "trials": 9},
        {"trainer": "other:train", "trainer_options": {"epochs": 3, "data": "a"}, "seed": 4},
    ]
    studies = [
        open_study(make_folder(tmp_path / str(n), 4, "svm", method="random", **one))
        for n, one in enumerate(given)
    ]
    assert {name: len(own) for name, own in by_setup(studies).items()} == {
        "random · my:train data=a": 1,
        "random · my:train data=b": 1,
        "random · other:train data=a": 2,
    }


def test_spaces_of_one_name_are_told_apart(folders: list[Path], tmp_path: Path) -> None:
    text = "C: {type: float, range: [0, %s]}"
    studies = []
    for limit in ("1", "2"):
        (tmp_path / limit).mkdir()
        file = tmp_path / limit / "mine.yaml"
        file.write_text(text % limit, encoding="utf-8")
        studies.append(open_study(make_folder(tmp_path / f"run{limit}", 4, str(file))))
    assert list(by_setup(studies)) == ["attnbo · mine (1)", "attnbo · mine (2)"]
    assert "differ in space: " in make_comparison(studies).warning


def _one_subspace(folder: Path, index: int, n: int) -> Study:
    """A sweep with trials of one subspace only."""
    create_folder(folder, make_sweep({"space": "svm", "trainer": "own:train", "mode": "max"}))
    with Search("svm", "random", "max", journal=folder / JOURNAL_FILE) as search:
        subspace = search.space.subspace(index)
        rows = [Suggestion(subspace.decode([at / n] * 9)) for at in range(n)]
        for trial in search.add_round(rows, 1.0):
            search.tell(trial, 0.1 * trial.id)
    return open_study(folder)


def test_shares_are_of_all_subspaces_that_any_sweep_visited(tmp_path: Path) -> None:
    studies = [_one_subspace(tmp_path / str(index), index, 4 + index) for index in (0, 1, 2)]
    page = make_comparison(studies)
    (drawing,) = (one.drawing for one in page.figures if one.name == "subspace-shares")
    assert drawing is not None
    bars = [s for s in drawing.shapes if isinstance(s, Box) and s.label and s.width > 1]
    assert [bar.label.rpartition(": ")[2] for bar in bars] == ["4 of 4", "5 of 5", "6 of 6"]
    assert len({bar.color for bar in bars}) == 3
    assert all(bar.width == pytest.approx(389) for bar in bars)


def _drawings(name: str, studies: list[Study]) -> list[Drawing]:
    drawings = [PANELS[name](study).drawing for study in set_beside(studies)]
    return [drawing for drawing in drawings if drawing is not None]


@pytest.mark.parametrize("name", ["pareto", "calibration", "suggestion-cost"])
def test_panels_share_their_scales(folders: list[Path], name: str) -> None:
    studies = [open_study(folder) for folder in folders[:2]]
    one, other = (
        [(s.x, s.y, s.text) for s in drawing.shapes if isinstance(s, Words) and s.size == 11]
        for drawing in _drawings(name, studies)
    )
    assert one == other
    alone = [PANELS[name](study).drawing for study in studies]
    ticks = [[s for s in d.shapes if isinstance(s, Words) and s.size == 11] for d in alone if d]
    assert ticks[0] != ticks[1]


@pytest.mark.parametrize("name", ["timeline", "failures"])
def test_bars_share_their_scales(folders: list[Path], name: str) -> None:
    """Twelve trials in three rounds next to sixteen in four."""
    short, long = (
        max(s.x + s.width for s in drawing.shapes if isinstance(s, Box)) - start
        for drawing in _drawings(name, [open_study(folder) for folder in folders[:2]])
        for start in (60 if name == "timeline" else 160,)
    )
    expected = {"timeline": 200 / 270, "failures": 11 / 15}
    assert short / long == pytest.approx(expected[name], abs=0.01)


def test_a_panel_for_each_sweep_and_a_word_for_those_without(
    folders: list[Path], tmp_path: Path
) -> None:
    bare = _one_subspace(tmp_path / "bare", 0, 6)
    studies = set_beside([open_study(folders[0]), bare, open_study(folders[2])])
    figure = draw_panels(PANELS["calibration"], studies)
    assert figure.html.count("<svg") == 2
    assert 'data-sweep="2"><h3>random0: random, seed 0</h3>' in figure.html
    why = "no finished trial has a prediction of its value in the journal"
    assert figure.caption.endswith(f"Left out: bare ({why}).")
    assert figure.is_wide


def test_a_panel_that_fails_costs_no_other(folders: list[Path]) -> None:
    def draw(study: Study) -> Figure:
        if study.name == "attnbo0":
            raise ZeroDivisionError("by zero")
        return PANELS["failures"](study)

    figure = draw_panels(draw, set_beside([open_study(folder) for folder in folders]))
    assert figure.html.count("<section") == 3
    assert figure.caption.endswith("Left out: attnbo0 (ZeroDivisionError: by zero).")


def test_networks_are_the_best_of_each_sweep_in_the_same_colours(tmp_path: Path) -> None:
    sizes = ((40, 0), (28, 1))  # the best of the second has fewer kinds of blocks
    studies = [open_study(make_folder(tmp_path / str(n), n, seed=seed)) for n, seed in sizes]
    colors: dict[str, set[str]] = {}
    for drawing, study in zip(_drawings("architectures", studies), studies, strict=True):
        titles = [s.text for s in drawing.shapes if isinstance(s, Words) and s.size == 14]
        assert [title.split(":")[0] for title in titles] == [f"trial {study.ranked[0].id}"]
        for box in (s for s in drawing.shapes if isinstance(s, Box) and "op: " in s.label):
            name = box.label.partition("op: ")[2].partition("\n")[0]
            colors.setdefault(name, set()).add(box.color)
    assert len(colors) > 3
    assert all(len(found) == 1 for found in colors.values())


def test_what_all_captions_say_is_said_once() -> None:
    captions = ["3 s in all. Costs are high.", "4.5 s in all. Costs are high."]
    assert split_captions(captions) == ("Costs are high.", ["3 s in all.", "4.5 s in all."])
    assert split_captions(["One. Two."]) == ("One. Two.", [""])


def test_spaces_may_differ_and_sweeps_may_be_empty(folders: list[Path], tmp_path: Path) -> None:
    other = make_folder(tmp_path / "cash", 12, "cash")
    page = make_comparison([open_study(folders[0]), open_study(other)])
    assert page.left_out[0] == ("subspace-shares", "the sweeps have different spaces")
    given = {"space": "svm", "trainer": "own:train"}
    create_folder(tmp_path / "new", make_sweep(given))
    empty = open_study(tmp_path / "new")
    page = make_comparison([empty, empty])
    assert _names(page) == ["sweeps"]
    assert [name for name, _ in page.left_out] == [*COMPARISONS, *PANELS]
    assert dict(page.left_out)["failures"] == "no trial has ended so far"


def test_what_cannot_be_compared(folders: list[Path], tmp_path: Path) -> None:
    with pytest.raises(NasboError, match="at least two"):
        write_comparison(folders[:1])
    other = make_folder(tmp_path / "min", 8, "svm", mode="min")
    with pytest.raises(NasboError, match="max val_accuracy, min val_accuracy"):
        write_comparison([folders[0], other])


def test_command(folders: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def call(*words: str | Path) -> Result:
        return CliRunner().invoke(cli, ["compare", *(str(word) for word in words)])

    monkeypatch.chdir(tmp_path)
    result = call(*folders)
    assert result.exit_code == 0, result.output
    text = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert text.count("data-figure=") == 10
    assert text.count("<section") == 6 * 4
    assert call(*folders, "--out", "b.html").stdout.strip() == "b.html"
    assert call().exit_code == 2
    assert call(tmp_path / "nowhere", folders[0]).exit_code == 2


def test_time_is_that_of_training(folders: list[Path], tmp_path: Path) -> None:
    study = open_study(make_interrupted(tmp_path / "run"))
    figure = make_comparison([study, study]).figures[-1]
    assert figure.html.count("<td>2 min</td>") == 2  # 150 s, and an hour in which nothing ran
    assert "without interruptions" in figure.caption
