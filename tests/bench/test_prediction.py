"""Quality of surrogate predictions: the numbers for known distributions, and the command."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from nasbo.bench.lookup import find_problem
from nasbo.bench.prediction import (
    WORST,
    Quality,
    Row,
    draw_rows,
    measure_predictions,
    on_scale,
    score,
    table,
)
from nasbo.cli import cli
from nasbo.errors import NasboError
from nasbo.gp.transform import Scale
from nasbo.history.data import Data
from nasbo.space import load_space


class Normal:
    """A surrogate that predicts the same normal distribution for all configs."""

    def __init__(self, mean: float, sd: float, scale: Scale) -> None:
        self.mean, self.sd, self.scale = mean, sd, scale

    def posteriors(self, batches: Any) -> tuple[torch.Tensor, torch.Tensor]:
        n = sum(len(x) for _, x in batches)
        ones = torch.ones(n, dtype=torch.float64)
        return self.mean * ones, self.sd**2 * ones


def held_out(scores: np.ndarray) -> Data:
    space, rng = load_space("simulation"), np.random.default_rng(0)
    subspaces = [space.random_subspace(rng) for _ in scores]
    return Data(space, subspaces, [s.sample(1, rng)[0] for s in subspaces], scores)


def quality(mean: float, sd: float, scores: np.ndarray, scale: Scale) -> Quality:
    return score(Normal(mean, sd, scale), held_out(scores))  # type: ignore[arg-type]


def test_the_true_distribution_has_the_best_density_and_is_calibrated() -> None:
    y = np.random.default_rng(0).normal(3.0, 2.0, 2_000)
    scale = Scale(3.0, 2.0)
    true = quality(0.0, 1.0, y, scale)
    assert true.error == pytest.approx(1.0, abs=0.01)
    assert true.log_density == pytest.approx(-0.5 * math.log(2 * math.pi * math.e), abs=0.02)
    assert true.calibration < 0.02
    assert true.best_error == pytest.approx(1.4, abs=0.1)
    for mean, sd in ((0.5, 1.0), (0.0, 0.5), (0.0, 2.0)):
        other = quality(mean, sd, y, scale)
        assert other.log_density < true.log_density - 0.1
        assert other.calibration > true.calibration + 0.03


def test_density_does_not_depend_on_the_scale_of_the_model() -> None:
    rng = np.random.default_rng(1)
    logs = rng.normal(0.5, 0.3, 3_000)
    y = 2.0 - np.exp(-logs)  # larger is better, never above 2
    logarithmic = quality(0.0, 1.0, y, Scale(0.5, 0.3, 2.0))
    whole = np.log(y.std()) + np.mean(
        -0.5 * ((logs - 0.5) / 0.3) ** 2 - np.log(0.3 * np.sqrt(2 * np.pi)) + logs
    )
    assert logarithmic.log_density == pytest.approx(whole, abs=0.01)
    assert logarithmic.log_density > quality(0.0, 1.0, y, Scale(y.mean(), y.std())).log_density


def test_scores_off_the_end_of_a_scale_count_as_the_worst() -> None:
    z, slope = on_scale(Scale(0.0, 1.0, 1.0), np.array([0.0, 1.0, 2.0]))
    assert z.tolist() == [0.0, math.inf, math.inf]
    assert slope[0] == 0.0
    found = quality(0.0, 1.0, np.array([0.5, 2.0]), Scale(0.0, 1.0, 1.0))
    near = quality(0.0, 1.0, np.array([0.5, 0.9]), Scale(0.0, 1.0, 1.0))
    assert WORST / 2 - 1 < found.log_density < WORST / 2 + 1 < near.log_density


def test_surrogates_are_fitted_to_the_same_rows_and_learn_from_more() -> None:
    lines: list[str] = []
    methods = ["attnbo", "gp", "attnbo[max_rows=10]"]
    rows = measure_predictions(methods, ["jenatton_small"], (12, 40), 2, lines.append)
    found = {(row.method, row.size): row.mean for row in rows}
    assert len(rows) == 6
    assert all(len(row.qualities) == 2 for row in rows)
    assert found["attnbo", 40].error < found["attnbo", 12].error
    assert found["attnbo", 40].error < found["attnbo[max_rows=10]", 40].error
    assert lines == ["jenatton_small: seed 1 of 2", "jenatton_small: seed 2 of 2"]
    again = measure_predictions(["attnbo"], ["jenatton_small"], (12, 40), 2)
    assert [row.qualities for row in again] == [r.qualities for r in rows if r.method == "attnbo"]


def test_noise_is_in_the_observations_only() -> None:
    problem = find_problem("blocks")
    assert problem.truth is not None
    told, true = (draw_rows(problem, 8, np.random.default_rng(0), is_true=at) for at in (0, 1))
    configs = [s.decode(x) for s, x in zip(true.subspaces, true.x, strict=True)]
    assert true.scores.tolist() == [-problem.truth(config) for config in configs]
    assert (told.scores != true.scores).all()


def test_methods_without_a_surrogate_and_bad_sizes_are_refused() -> None:
    with pytest.raises(NasboError, match="random has no surrogate"):
        measure_predictions(["random"], ["jenatton_small"])
    with pytest.raises(NasboError, match="seeds >= 1 and sizes >= 2 must hold"):
        measure_predictions(["gp"], ["jenatton_small"], (1,))


def test_the_table_ends_with_the_mean_over_the_problems() -> None:
    one, two = Quality(0.5, 0.4, -1.0, 0.1), Quality(0.7, 0.2, -2.0, 0.3)
    rows = [Row("share", 20, "gp", (one,)), Row("blocks", 20, "gp", (two,))]
    head, *lines = table(rows)
    assert head.split()[:3] == ["problem", "n", "method"]
    assert lines[-1].split() == ["all", "20", "gp", "0.600", "0.300", "-1.50", "0.200"]
    assert len(table(rows[:1])) == 2


def test_command_prints_the_table() -> None:
    words = ["-m", "gp", "--problem", "jenatton_small", "--size", "10", "--seeds", "1"]
    result = CliRunner().invoke(cli, ["bench", "predict", *words])
    assert result.exit_code == 0, result.output
    assert "jenatton_small" in result.stdout.splitlines()[-1]
