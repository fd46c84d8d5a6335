"""Learners built from configs, on every subspace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nasbo.bench.problems import make_problem
from nasbo.bench.problems.learners import FAMILIES, cash, mlp, mlp_space, svm, with_log_ranges
from nasbo.bench.problems.openml import load_set
from nasbo.bench.problems.pipelines import FAMILY, pipeline, pipeline_space
from nasbo.bench.problems.scoring import log_loss
from nasbo.bench.problems.tuning import Family, Package
from nasbo.errors import NasboError
from nasbo.space import load_space

MLP = {"learning_rate": 0.01, "tolerance": 1e-4, "normalisation": "standard", "alpha": 1e-4}


@pytest.mark.parametrize("family", [*FAMILIES[:3], FAMILIES[-1], FAMILY], ids=lambda f: f.name)
def test_every_subspace_has_learners_that_fit(family: Family, data: Path) -> None:
    table, rng = load_set("blood"), np.random.default_rng(0)
    rows = np.r_[0:150]
    for subspace in family.space().subspaces():
        learner = family.learner(subspace.sample_config(rng), 4)
        learner.fit(table.features[rows], table.labels[rows])
        assert len(learner.predict(table.features)) == len(table.labels)


def test_a_config_reaches_its_learner() -> None:
    machine = svm({"C": 3.0, "kernel": "poly", "degree": 4, "gamma": 0.5})[-1]
    assert (machine.C, machine.kernel, machine.degree, machine.gamma) == (3.0, "poly", 4, 0.5)
    config = load_space("cash").default_config()
    config = {**config, "learning_rate": 0.05}
    booster = cash(config)[-1]
    assert (booster.learning_rate, booster.booster) == (0.05, "gbtree")
    network = mlp({**MLP, "n_layers": 2, "activation": "tanh", "units_1": 7, "units_2": 3})[-1]
    assert (network.hidden_layer_sizes, network.activation) == ((7, 3), "tanh")
    bare = mlp({**MLP, "n_layers": 0, "normalisation": "none"})
    assert bare.hidden_layer_sizes == ()


def test_networks_have_a_subspace_per_depth() -> None:
    sizes = [subspace.n_parameters for subspace in mlp_space().subspaces()]
    assert sizes == [5, 7, 8, 9, 10]


def test_log_ranges_change_the_scale_and_nothing_else() -> None:
    plain, log = load_space("cash"), with_log_ranges("cash")
    coordinates = [one for subspace in log.subspaces() for one in subspace.coordinates]
    logged = {one.name for one in coordinates if one.parameter.flat_range[2]}
    assert logged == {"C", "gamma", "reg_alpha", "reg_lambda"}
    assert log.n_subspaces == plain.n_subspaces
    config = plain.sample(np.random.default_rng(0))
    assert log.canonical(config) == config


def test_good_settings_beat_bad_ones(data: Path) -> None:
    table = load_set("diabetes")
    good = {"C": 1.0, "kernel": "linear"}
    bad = {"C": 1.0, "kernel": "rbf", "gamma": 1000.0}
    assert log_loss(lambda: svm(good), table) < log_loss(lambda: svm(bad), table) - 0.1


def test_the_pipeline_space_is_finite() -> None:
    space = pipeline_space()
    counts = [subspace.n_configs for subspace in space.subspaces()]
    assert len(counts) == 30
    assert all(count is not None and count > 10 for count in counts)


def test_a_pipeline_has_the_steps_of_its_config() -> None:
    config = {"scaler": "range", "reducer": "pca", "tenths": 5, "estimator": "tree",
              "max_depth": 3, "min_leaf": 2, "criterion": "entropy"}  # fmt: skip
    steps = pipeline(pipeline_space().canonical(config), 8)
    assert [type(step).__name__ for _, step in steps.steps] == [
        "MinMaxScaler", "PCA", "DecisionTreeClassifier"
    ]  # fmt: skip
    assert (steps[1].n_components, steps[2].max_depth) == (4, 3)


def test_the_smallest_share_of_few_features_keeps_one() -> None:
    tree = {"estimator": "tree", "max_depth": 3, "min_leaf": 2, "criterion": "gini"}
    for reducer in ("pca", "select"):
        config = {"scaler": "none", "reducer": reducer, "tenths": 1, **tree}
        learner = pipeline(pipeline_space().canonical(config), 4)
        features = np.random.default_rng(0).random((30, 4))
        assert learner.fit(features, features[:, 0] > 0.5)[:-1].transform(features).shape == (30, 1)


def test_values_are_the_same_in_another_order(data: Path) -> None:
    problem, rng = make_problem("pipeline_blood"), np.random.default_rng(0)
    configs = [problem.space.sample(rng) for _ in range(2)]
    table = load_set("blood")
    alone = [log_loss(lambda c=c: pipeline(c, 4), table) for c in reversed(configs)]  # type: ignore[misc]
    assert [problem.evaluate(config, rng) for config in configs] == alone[::-1]


def test_a_missing_package_is_named() -> None:
    with pytest.raises(NasboError, match=r"the package some-package is needed: pip install some"):
        Package("no_such_module_here", "some-package").check()
    assert Package("no_such_module_here", "some-package").version == "no_such_module_here absent"


def test_missing_data_are_found_out_before_the_first_evaluation(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NASBO_DATA", str(tmp_path))
    path = tmp_path / "openml" / "9946_wdbc.csv"
    path.parent.mkdir()
    path.write_text("a\n1\n")
    with pytest.raises(NasboError, match=r"9946_wdbc\.csv"):
        make_problem("svm_wdbc")
