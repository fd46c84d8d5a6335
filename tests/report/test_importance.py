"""Which parameters matter, on searches whose truth is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nasbo.history import History
from nasbo.report.importance import measure_importance, unit_values
from nasbo.search import Search
from nasbo.space import Config
from tests.conftest import SPACES


def _history(space: Any, objective: Callable[[Config], float | None], n: int = 80) -> History:
    search = Search(space, method="random", mode="max", seed=1)
    for trial in search.ask(n):
        value = objective(trial.config)
        search.tell(trial, value, error=None if value is not None else "diverged")
    return search.history


def test_the_parameter_that_decides_has_most() -> None:
    found = measure_importance(_history(SPACES["flat"], lambda config: config["x"] ** 2))
    assert found is not None
    assert next(iter(found.shares)) == "x"
    assert found.shares["x"] > 0.9
    assert found.explained > 0.8
    assert found.n_trials == 80
    assert sum(found.shares.values()) == pytest.approx(1.0)


def test_two_parameters_share() -> None:
    def objective(config: Config) -> float:
        return float(config["x"] + 0.25 * config["n"])

    found = measure_importance(_history(SPACES["flat"], objective, 300))
    assert found is not None
    assert set(list(found.shares)[:2]) == {"x", "n"}
    assert 0.3 < found.shares["x"] < 0.7


def test_noise_explains_nothing() -> None:
    rng = np.random.default_rng(0)
    found = measure_importance(_history(SPACES["flat"], lambda config: float(rng.normal())))
    assert found is not None
    assert found.explained < 0.1


def test_entries_of_lists_are_apart_and_together_by_name() -> None:
    found = measure_importance(
        _history(SPACES["repeated"], lambda config: float(config["op"][0] == "a"), 120)
    )
    assert found is None  # two values alone have no ranks to speak of
    found = measure_importance(
        _history(SPACES["repeated"], lambda c: (c["op"][0] == "a") + 0.1 * c["x"][0], 120)
    )
    assert found is not None
    assert next(iter(found.shares)) == "op[1]"
    names = found.by_name()
    assert next(iter(names)) == "op"
    assert names["op"] >= found.shares["op[1]"]
    assert sum(names.values()) == pytest.approx(1.0)


def test_a_structural_choice_and_one_terrible_config() -> None:
    def objective(config: Config) -> float:
        top = {"left": 0.0, "right": 1.0, "none": 2.0}[config["top"]]
        return -1e9 if config.get("gamma", 1.0) < 0.02 else top + 0.01 * config["flag"]

    found = measure_importance(_history(SPACES["nested"], objective, 120))
    assert found is not None
    assert next(iter(found.shares)) == "top"


def test_too_little_to_tell() -> None:
    assert measure_importance(_history(SPACES["flat"], lambda config: config["x"], 7)) is None
    assert measure_importance(_history(SPACES["flat"], lambda config: 1.0)) is None
    assert measure_importance(_history(SPACES["flat"], lambda config: None)) is None


def test_unit_values_know_what_is_absent() -> None:
    history = _history(SPACES["nested"], lambda config: 1.0, 30)
    found = unit_values(history, history.trials)
    for row, trial in enumerate(history.trials):
        assert np.isnan(found["gamma"][row]) == ("gamma" not in trial.config)
        if "gamma" in trial.config:
            assert found["gamma"][row] == pytest.approx(trial.config["gamma"])
