"""TPE through Optuna: what it is told, and that it uses it."""

from __future__ import annotations

import numpy as np
import pytest

from nasbo.methods.base import Task
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
    return Task(space, rows, pending, set(search.history.keys), 2, np.random.default_rng(0), 5)


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
