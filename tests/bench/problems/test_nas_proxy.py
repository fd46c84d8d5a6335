"""Ensemble that replaces the training of block networks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.ensemble import ExtraTreesRegressor

from nasbo.bench.problem import Config, Problem
from nasbo.bench.problems import make_problem, nas_proxy
from nasbo.bench.problems.ensemble import fit_ensemble, flatten
from nasbo.bench.problems.noise import own_stream

BEST: dict[str, Config] = {
    "nas_proxy": {
        "nums_block": 5, "conv_op": [2, 2, 2, 2, 2], "expand_ratio": [6, 6, 6, 6, 5],
        "seratio": [0, 8, 0, 8, 8], "kernel_size": [3, 3, 5, 3, 5], "nums_layer": [0, 1, 0, 0, 1],
        "nums_channel": [1.3, 1.25, 1.3, 1.3, 1.3], "stride_layer": 43, "learning_rate": 0.07,
        "step_size": 85, "batch_size": 32,
    },
    "nas_proxy_other": {
        "nums_block": 5, "conv_op": [2, 2, 2, 2, 2], "expand_ratio": [6, 6, 6, 5, 5],
        "seratio": [0, 16, 0, 16, 8], "kernel_size": [3, 5, 5, 3, 5], "nums_layer": [0, 1, 0, 0, 1],
        "nums_channel": [1.3, 1.25, 1.3, 1.3, 1.3], "stride_layer": 43, "learning_rate": 0.07,
        "step_size": 85, "batch_size": 32,
    },
}  # fmt: skip


def truth(problem: Problem, config: Config) -> float:
    assert problem.truth is not None
    return problem.truth(config)


def test_a_forest_in_one_numbering_predicts_as_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(80, 5)), rng.uniform(size=80)
    trees = ExtraTreesRegressor(20, min_samples_leaf=2, random_state=0).fit(X, y)
    forest = flatten([one.tree_ for one in trees.estimators_])
    new = rng.uniform(size=(30, 5))
    np.testing.assert_allclose(forest.predict(new), trees.predict(new), rtol=1e-12)


def test_features_of_a_config() -> None:
    found = nas_proxy.features(BEST["nas_proxy"])
    assert len(found) == 82
    assert found[:5] == [5, 0, 0.07, 85, 5]
    assert found[5:14] == [0, 0, 1, 0, 3, 0, 0, 1.3, 6]
    assert found[50:68] == [0] * 18
    assert found[68:78] == [7, 2, 0, 0, 5, 0, 0, 0, 7, 0]
    assert found[78:] == pytest.approx([3.8, 0.6, 1.29, 0])


def test_the_ensemble_ranks_networks_that_it_has_not_seen() -> None:
    rows = nas_proxy.read_rows()
    assert len(rows) == 624
    X = np.array([nas_proxy.features(row["config"]) for row in rows])
    y = np.array([row["val_error"] for row in rows])
    held = np.random.default_rng(0).permutation(len(y))[::5]
    seen = np.setdiff1d(np.arange(len(y)), held)
    predicted = fit_ensemble(X[seen], y[seen], 0).predict(X[held])
    assert spearmanr(predicted, y[held])[0] > 0.88
    assert np.sqrt(np.mean((predicted - y[held]) ** 2)) < 0.019


@pytest.mark.parametrize("name", sorted(BEST))
def test_the_optimum_is_reached_and_no_single_change_is_better(name: str) -> None:
    problem, best = make_problem(name), BEST[name]
    assert problem.optimum is not None
    assert problem.optimum <= truth(problem, best) < problem.optimum + 1e-6
    changed = [best | {"conv_op": [kind, *best["conv_op"][1:]]} for kind in (0, 1, 3)]
    changed += [best | {"batch_size": size} for size in (64, 128)] + [best | {"stride_layer": 44}]
    changed += [best | {"learning_rate": float(rate)} for rate in np.linspace(0.0701, 0.15, 40)]
    assert all(truth(problem, one) >= problem.optimum for one in changed)


def test_the_reference_value_of_the_first_training() -> None:
    first = nas_proxy.read_rows()[0]["config"]
    assert truth(make_problem("nas_proxy"), first) == pytest.approx(0.58537954, abs=1e-5)


@pytest.mark.parametrize(("name", "deviation"), [("nas_proxy", 0.013), ("nas_proxy_other", 0.02)])
def test_noise_has_its_width_and_is_fresh_at_each_query(name: str, deviation: float) -> None:
    problem, config = make_problem(name), BEST[name]
    values = [problem.evaluate(config, np.random.default_rng([7, i])) for i in range(400)]
    assert len(set(values)) == 400
    assert np.std(values) == pytest.approx(deviation, rel=0.1)
    assert np.mean(values) == pytest.approx(truth(problem, config), abs=deviation / 5)
    assert problem.evaluate(config, np.random.default_rng([7, 3])) == values[3]


def test_problems_do_not_share_their_noise() -> None:
    drawn = [own_stream(name, np.random.default_rng(5)).standard_normal() for name in ("a", "b")]
    assert drawn[0] != drawn[1]
    assert drawn[0] == own_stream("a", np.random.default_rng(5)).standard_normal()
