"""Figure 4 of the Add-Tree paper, in a small version."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from nasbo.bench.addtree_regression import Regression, measure, small_balanced
from nasbo.cli import cli


def test_sharing_needs_fewer_observations() -> None:
    found = measure([12, 40], n_seeds=2)
    medians = {name: np.median(errors, axis=0) for name, errors in found.errors.items()}
    assert medians["addtree"][1] < 0.3 * medians["independent"][1]
    assert medians["tree"][1] < 0.3 * medians["independent"][1]
    assert medians["addtree"][1] < 0.1 * medians["addtree"][0]


def test_function_is_the_one_of_the_paper() -> None:
    assert small_balanced({"x1": 0, "r8": 0.0, "x2": 0, "x4": 0.0}) == pytest.approx(0.1)
    assert small_balanced({"x1": 1, "r9": 0.5, "x3": 1, "x7": -1.0}) == pytest.approx(1.9)


def test_needed_is_the_first_size_that_will_do() -> None:
    errors = np.array([[1.0, 1e-5, 1e-6], [1.0, 1e-3, 1e-6], [1.0, 1e-3, 1e-6]])
    found = Regression((10, 20, 30), {"a": errors, "b": errors + 1})
    assert found.needed("a") == 30
    assert found.needed("a", goal=2.0) == 10
    assert found.needed("b") is None


def call(*words: str | int | Path) -> Result:
    return CliRunner().invoke(cli, ["bench", "figure4", *map(str, words)])


def test_command_writes_plot_and_table(tmp_path: Path) -> None:
    done = call("--out", tmp_path / "figure.png", "--seeds", 1, "--size", 8, "--size", 12)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "figure.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 2
    assert {row["model"] for row in rows} == {"addtree", "independent", "tree"}
    assert "addtree      MSE <= 0.0001" in done.output


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--out", "figure.doc"], "the plot must end in .png or .pdf or .svg, got 'figure.doc'"),
        (["--seeds", "0"], "seeds >= 1 and sizes >= 2 must hold, but got 0"),
    ],
)
def test_bad_input_is_refused_before_anything_is_measured(words: list[str], text: str) -> None:
    done = call(*words)
    assert done.exit_code == 2
    assert text in done.output
