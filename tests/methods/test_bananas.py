"""BANANAS: refits, mutations of the best configs, and what suggestions tell."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from nasbo.bench.problems.nas_tables import NASBENCH201, nasbench201
from nasbo.methods import make_method
from nasbo.search import Search
from nasbo.space.neighbours import values_of
from nasbo.surrogates.mlp_ensemble import MLPEnsemble

from .functions import SMALL, jenatton, searched


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of results of each fit."""
    sizes: list[int] = []
    fit = MLPEnsemble.fit

    def counted(self: MLPEnsemble, X: Tensor, z: Tensor, seed: int) -> None:
        sizes.append(len(X))
        fit(self, X, z, seed)

    monkeypatch.setattr(MLPEnsemble, "fit", counted)
    return sizes


def test_networks_are_trained_after_every_so_many_results(fits: list[int]) -> None:
    search = searched("bananas", 25, refit_every=10)
    assert fits == [10, 20]
    assert [trial.info["parent"] for trial in search.trials[8:10]] == [None, None]
    assert None not in [trial.info["parent"] for trial in search.trials[10:]]


def test_by_default_networks_are_trained_on_all_results(fits: list[int]) -> None:
    searched("bananas", 12)
    assert fits == [8, 9, 10, 11]


@pytest.mark.parametrize("acquisition", ["its", "ei"])
def test_a_fresh_method_suggests_the_same_from_the_history(acquisition: str) -> None:
    options: dict[str, Any] = {"refit_every": 5, "acquisition": acquisition}
    search = searched("bananas", 17, **options)
    for _ in range(4):
        (expected,) = make_method("bananas", search.space, 0, **options).suggest(search.history, 1)
        (trial,) = search.ask(1)
        assert trial.config == expected.config
        search.tell(trial, jenatton(trial.config))


def test_candidates_are_mutations_of_the_best() -> None:
    search = searched("bananas", 20, parents=3)
    best = sorted(search.trials, key=lambda trial: trial.value or 0.0)[:3]
    asked = search.ask(12)
    assert {trial.info["parent"] for trial in asked} <= {trial.id for trial in best}
    for trial in asked:
        parent = search.trials[trial.info["parent"]]
        before = values_of(search.space.subspace(parent.subspace), parent.config)
        after = values_of(search.space.subspace(trial.subspace), trial.config)
        assert sum(before[key] != after[key] for key in before.keys() & after.keys()) == 1


@pytest.mark.parametrize(("acquisition", "name"), [("its", "draw"), ("ei", "log_ei")])
def test_the_largest_acquisition_values_win(acquisition: str, name: str) -> None:
    asked = searched("bananas", 14, acquisition=acquisition).ask(5)
    values = [trial.info[name] for trial in asked]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) == 5
    assert {trial.acquisition and trial.acquisition[0] for trial in asked} == {name}


def test_predictions_come_close_to_values() -> None:
    search = Search(SMALL, method="bananas", mode="min", seed=1)
    for _ in range(60):
        (trial,) = search.ask(1)
        search.tell(trial, jenatton(trial.config))
    told = [trial for trial in search.trials if "predicted" in trial.info][20:]
    assert all(t.info["predicted_low"] < t.info["predicted_high"] for t in told)
    values = [trial.value or 0.0 for trial in told]
    assert np.corrcoef([trial.info["predicted"] for trial in told], values)[0, 1] > 0.5


def test_it_finds_the_best_cell_of_nasbench201_in_about_85_queries() -> None:
    """The mean over 30 seeds with refits at every ten results is 86; that of evolution is 189."""
    NASBENCH201.check()
    problem = nasbench201("cifar10")
    assert problem.optimum is not None
    found = []
    for seed in range(5):
        search = Search(problem.space, method="bananas", seed=seed, refit_every=10)
        error = np.inf
        while error > problem.optimum + 1e-9 and len(search.trials) < 300:
            (trial,) = search.ask(1)
            error = problem.true_value(trial.config)
            search.tell(trial, error)
        found.append(len(search.trials))
    assert fmean(found) < 130
