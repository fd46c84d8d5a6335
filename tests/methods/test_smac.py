"""SMAC through its package: the same forest at lower cost, and equal results in every process."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from nasbo.methods.smac import Smac
from nasbo.search import Search
from nasbo.space import load_space
from nasbo.testing.spaces import objective
from tests.methods import taste

smac = pytest.importorskip("smac")
ROOT = Path(__file__).parents[2]


def suggestions() -> list[object]:
    """Three configs of a search on the simulation, one after the other."""
    space = load_space("simulation")
    search = Search(space, method="smac", seed=3)
    for trial in search.ask(8):
        search.tell(trial, objective(space, trial.config))
    configs: list[object] = []
    for _ in range(3):
        (trial,) = search.ask(1)
        assert trial.source == "model"
        search.tell(trial, objective(space, trial.config))
        configs.append(trial.config)
    return configs


PROGRAM = "from tests.methods.test_smac import suggestions; print(suggestions())"


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_how_python_hashes_strings_changes_no_config(hash_seed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        capture_output=True, check=True, cwd=ROOT, text=True,
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == str(suggestions())


def test_suggesting_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert len(suggestions()) == 3


def test_forest_with_little_room_is_smacs_own() -> None:
    method = Smac(load_space("simulation"))
    space = method._config_space(0)
    scenario = smac.Scenario(space, deterministic=True, n_trials=40, seed=4)
    x = np.array([config.get_array() for config in space.sample_configuration(60)])
    y = np.random.default_rng(0).random((40, 1))
    ours = method._forest(scenario, 40)
    theirs = smac.HyperparameterOptimizationFacade.get_model(scenario)
    (mean, variance), (their_mean, their_variance) = (
        forest.train(x[:40], y).predict_marginalized(x) for forest in (ours, theirs)
    )
    np.testing.assert_array_equal(mean, their_mean)
    np.testing.assert_array_equal(variance, their_variance)
    assert variance.max() > 0


def test_parameters_below_a_choice_of_one_value_exist_where_it_does() -> None:
    x = {"type": "float", "range": [0, 1]}
    one = {"type": "choice", "range": ["sgd"], "submodule": {"sgd": {"m": x}}}
    two = {"type": "int", "range": [2, 3], "submodule": {"opt": one}}
    below = {"a": {"n": two}, "b": {"z": x}}
    space = load_space({"kind": {"type": "choice", "range": ["a", "b"], "submodule": below}})
    search = Search(space, method="smac")
    for trial in search.ask(4):
        search.tell(trial, objective(space, trial.config))
    assert {trial.source for trial in search.ask(2)} == {"model"}


def test_few_configs_inside_the_limits_are_found() -> None:
    taste.check_few_are_found(Search(taste.TREE, method="smac", limits=taste.few), 8)
