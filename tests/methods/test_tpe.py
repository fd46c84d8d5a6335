"""TPE through Optuna: its data, and their effect."""

from __future__ import annotations

import numpy as np
import pytest

from nasbo.history import config_key
from nasbo.methods.base import Task
from nasbo.methods.exclusion import Excluded
from nasbo.methods.recombined import recombined
from nasbo.methods.tpe import Tpe
from nasbo.search import Search
from nasbo.space import Space, load_space
from tests.methods import taste


def told(space: Space, n: int = 30) -> Task:
    search = Search(space, method="random")
    for trial in search.ask(n):
        search.tell(trial, float(len(str(trial.config))))
    pending = [trial.config for trial in search.ask(2)]
    rows = search.history.rows()
    return Task(space, rows, pending, Excluded(search.history.keys), 2, np.random.default_rng(0), 5)


def test_study_holds_results_and_running_configs(any_space: Space) -> None:
    task = told(any_space)
    study = Tpe(any_space)._study(task)
    scores = [score for _, score in task.rows]
    assert [trial.value for trial in study.trials] == scores + [None] * len(task.pending)
    states = [trial.state.name for trial in study.trials]
    assert states == ["COMPLETE"] * len(task.rows) + ["RUNNING"] * len(task.pending)
    assert study.direction.name == "MAXIMIZE"


@pytest.mark.parametrize("multivariate", [False, True])
def test_good_values_are_asked_for_more_often(multivariate: bool) -> None:
    search = Search(taste.SPACE, method="tpe", seed=1, multivariate=multivariate)
    taste.check_good_values_are_asked_for(search)


def test_one_seed_one_answer() -> None:
    space = load_space("svm")
    task = told(space)
    first, second = (Tpe(space).propose(task) for _ in range(2))
    assert first == second
    other = Task(space, task.rows, task.pending, task.taken, 2, task.rng, 6)
    assert Tpe(space).propose(other) != first


@pytest.mark.parametrize("multivariate", [False, True])
def test_few_configs_inside_the_limits_are_found(multivariate: bool) -> None:
    search = Search(taste.TREE, method="tpe", multivariate=multivariate, limits=taste.few)
    taste.check_few_are_found(search, 16)


def test_recombined_configs_are_new_and_made_of_what_was_asked_for(nested_space: Space) -> None:
    rng = np.random.default_rng(0)
    rejected = [nested_space.sample(rng) for _ in range(10)]
    taken = Excluded(map(config_key, rejected))
    before = {config_key(config) for config in rejected}
    first, second = (
        recombined(nested_space, rejected, taken.copy(), 3, np.random.default_rng(1))
        for _ in range(2)
    )
    assert first == second
    assert all(0 <= one.info["redrawn"] < 0.1 for one in first)
    assert len({config_key(one.config) for one in first} - before) == 3
    asked = {str(value) for config in rejected for value in config.values()}
    assert {str(value) for one in first for value in one.config.values()} <= asked
    assert recombined(nested_space, [], taken, 3, rng) == []
