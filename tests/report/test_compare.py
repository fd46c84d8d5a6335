"""Several sweeps on one page."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nasbo.cli import cli
from nasbo.errors import NasboError
from nasbo.report.compare import make_comparison, method_colors, write_comparison
from nasbo.report.drawing import Line
from nasbo.report.page import Page
from nasbo.report.study import open_study
from nasbo.sweep import create_folder, make_sweep
from tests.report.sample import make_folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    place = tmp_path_factory.mktemp("compare")
    return [
        make_folder(place / f"{method}{seed}", 12 + 4 * seed, "svm", method=method, seed=seed)
        for method in ("attnbo", "random")
        for seed in (0, 1)
    ]


def _names(page: Page) -> list[str]:
    return [figure.name for figure in page.figures]


def test_page_of_methods_and_seeds(folders: list[Path]) -> None:
    page = make_comparison([open_study(folder) for folder in folders])
    assert _names(page) == ["best-so-far", "best-values", "subspace-shares", "sweeps"]
    assert page.left_out == []
    curves = page.figures[0].drawing
    assert curves is not None
    lines = [shape for shape in curves.shapes if isinstance(shape, Line) and shape.label]
    assert len(lines) == 6
    assert sum(line.label.startswith("median of 2") for line in lines) == 2
    assert {line.color for line in lines} == {"c1", "c2"}
    for folder in folders:
        assert f"<td>{folder.name}</td>" in page.figures[-1].html


def test_colours_go_by_method(folders: list[Path]) -> None:
    studies = [open_study(folder) for folder in folders]
    assert method_colors(studies) == {"attnbo": "c1", "random": "c2"}


def test_options_of_a_method_make_it_another(folders: list[Path], tmp_path: Path) -> None:
    options = {"acquisition": "thompson"}
    other = make_folder(tmp_path / "o", 12, "svm", method="attnbo", method_options=options)
    studies = [open_study(folder) for folder in (*folders, other)]
    assert list(method_colors(studies)) == ["attnbo", "random", "attnbo[acquisition=thompson]"]
    curves = make_comparison(studies).figures[0].drawing
    assert curves is not None
    medians = [s.label for s in curves.shapes if isinstance(s, Line) and "median" in s.label]
    assert medians == ["median of 2 sweeps by attnbo", "median of 2 sweeps by random"]


def test_spaces_may_differ_and_sweeps_may_be_empty(folders: list[Path], tmp_path: Path) -> None:
    other = make_folder(tmp_path / "cash", 12, "cash")
    page = make_comparison([open_study(folders[0]), open_study(other)])
    assert page.left_out == [("subspace-shares", "the sweeps have different spaces")]
    given = {"space": "svm", "trainer": "own:train"}
    create_folder(tmp_path / "new", make_sweep(given))
    empty = open_study(tmp_path / "new")
    page = make_comparison([empty, empty])
    assert _names(page) == ["sweeps"]
    assert len(page.left_out) == 3


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
    assert text.count("data-figure=") == 4
    assert call(*folders, "--out", "b.html").stdout.strip() == "b.html"
    assert call().exit_code == 2
    assert call(tmp_path / "nowhere", folders[0]).exit_code == 2
