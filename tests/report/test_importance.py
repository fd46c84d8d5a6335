"""Parameter importance on searches with known truth."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nasbo.history import History
from nasbo.report.importance import measure_importance, unit_values
from nasbo.search import Search
from nasbo.space import Config
from nasbo.testing import SPACES


def _history(
    space: Any, objective: Callable[[Config], float | None], n: int = 80, seed: int = 1
) -> History:
    search = Search(space, method="random", mode="max", seed=seed)
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


def test_how_often_each_parameter_is_the_largest() -> None:
    sure = measure_importance(_history(SPACES["flat"], lambda config: config["x"] ** 2))
    assert sure is not None
    assert sure.leads["x"] == 1.0
    assert sum(sure.leads.values()) == pytest.approx(1.0)
    even = measure_importance(
        _history(SPACES["flat"], lambda config: float(config["x"] + 0.25 * config["n"]), 300)
    )
    assert even is not None
    assert 0.0 < even.leads["n"] < 1.0
    assert even.leads["x"] + even.leads["n"] == pytest.approx(1.0)


def test_two_parameters_share() -> None:
    def objective(config: Config) -> float:
        return float(config["x"] + 0.25 * config["n"])

    found = measure_importance(_history(SPACES["flat"], objective, 300))
    assert found is not None
    assert set(list(found.shares)[:2]) == {"x", "n"}
    assert 0.3 < found.shares["x"] < 0.7


def _many(n: int) -> dict[str, Any]:
    kinds = ({"type": "float", "range": [0, 1]}, {"type": "choice", "range": ["a", "b", "c"]})
    return {f"p{at}": kinds[at % 2] for at in range(n)}


def _noise(seed: int) -> Callable[[Config], float]:
    rng = np.random.default_rng(seed)
    return lambda config: float(rng.normal())


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("space", [_many(47), "nas_cifar10"], ids=["flat", "lists"])
def test_few_results_of_noise_claim_nothing(space: Any, seed: int) -> None:
    found = measure_importance(_history(space, _noise(seed), 16, seed))
    assert found is not None
    assert "16 results in 4" in found.doubt
    assert "cannot tell which matter" in found.doubt


def test_noise_is_claimed_to_matter_in_few_cases() -> None:
    """The permutation test alone would accept 5 %."""
    n_claims = 0
    for seed in range(40):
        found = measure_importance(_history(_many(12), _noise(seed), 60, seed))
        assert found is not None
        n_claims += not found.doubt
    assert n_claims <= 3


@pytest.mark.parametrize("seed", range(4))
def test_a_parameter_that_rules_is_named_with_an_interval(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = measure_importance(
        _history(_many(47), lambda c: float(c["p0"] + 0.15 * rng.normal()), 60, seed)
    )
    assert found is not None
    assert found.doubt == ""
    assert next(iter(found.by_name())) == "p0"
    low, high = found.intervals["p0"]
    assert low <= found.shares["p0"] <= high
    assert low > 0.6
    assert low > 2 * max(high for name, (_, high) in found.intervals.items() if name != "p0")


def _interval(n: int, seed: int) -> tuple[float, float]:
    """Interval for one of two equally important parameters."""
    rng = np.random.default_rng(1_000 + seed)
    found = measure_importance(
        _history(_many(8), lambda c: c["p0"] + c["p2"] + 0.3 * float(rng.normal()), n, seed)
    )
    assert found is not None
    return found.intervals["p0"]


def test_intervals_hold_the_truth_and_become_narrow_with_results() -> None:
    found = {n: [_interval(n, seed) for seed in range(20)] for n in (60, 400)}
    for intervals in found.values():
        assert sum(low <= 0.5 <= high for low, high in intervals) >= 17
    few, many = (np.mean([high - low for low, high in one]) for one in found.values())
    assert many < few / 2


def test_entries_of_lists_are_apart_and_together_by_name() -> None:
    found = measure_importance(
        _history(SPACES["repeated"], lambda config: float(config["op"][0] == "a"), 120)
    )
    assert found is None  # ranks of only two values mean nothing
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


def test_time_is_bounded_and_the_answer_is_the_same_each_time() -> None:
    rng = np.random.default_rng(0)
    history = _history(_many(50), lambda c: c["p0"] + float(rng.normal()), 200)
    begin = time.process_time()
    found = measure_importance(history)
    assert time.process_time() - begin < 4.0  # about 0.3 s
    assert found == measure_importance(history)


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
