"""Methods that search several objectives: better than random, and the same after a stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nasbo.history import Trial
from nasbo.history.front import hypervolume
from nasbo.methods.estimates import ESTIMATES
from nasbo.search import Search
from nasbo.space import Config
from tests.fronts import SPACE, TEXTS, accuracy, drive, sizes

METHODS = ["random", "evolution", "attnbo"]
TREE: dict[str, Any] = {
    "kind": {
        "type": "choice",
        "range": ["slim", "wide"],
        "submodule": {
            "slim": {"width": {"type": "powerint2", "range": [2, 5]}},
            "wide": {"width": {"type": "powerint2", "range": [5, 9]}},
        },
    },
    "rate": {"type": "float", "range": [1e-4, 1e-1], "log": True},
}


def tree_sizes(config: Config) -> dict[str, float]:
    return {"params": float(config["width"] ** 2)}


def tree_values(config: Config) -> dict[str, float]:
    gain = 0.05 * np.log2(config["width"]) - 0.1 * (np.log10(config["rate"]) + 2.5) ** 2
    return {"acc": gain + 0.2 * (config["kind"] == "slim"), "energy": 2.0 + config["width"]}


def make(method: str, seed: int = 0, **given: Any) -> Search:
    options = {"population": 10} if method == "evolution" else {}
    goal: dict[str, Any] = {"objectives": TEXTS, "features": sizes}
    return Search(SPACE, method, seed=seed, **{**goal, **given}, **options)


def share(trials: list[Trial]) -> float:
    """Hypervolume of true values, accuracy above .6 and the logarithm of a size below 400,000."""
    rows = [[accuracy(t.config), -np.log(sizes(t.config)["params"])] for t in trials]
    return hypervolume(np.array(rows), np.array([0.6, -np.log(4e5)]))


def test_the_model_finds_more_of_the_front_than_chance() -> None:
    found: dict[str, list[float]] = {"random": [], "attnbo": []}
    for method, seed in [(m, s) for m in found for s in range(3)]:
        search = make(method, seed)
        drive(search, 30)
        found[method].append(share(search.trials))
        assert all(trial.source != "fallback" for trial in search.trials)
    assert min(found["attnbo"]) > max(found["random"])


@pytest.mark.parametrize("method", METHODS)
def test_a_stopped_search_goes_on_as_if_it_had_not(method: str, tmp_path: Path) -> None:
    whole = make(method, 3)
    drive(whole, 18)
    for n in (4, 8, 6):
        with make(method, 3, journal=tmp_path / "journal.jsonl") as part:
            drive(part, n)
    assert [t.config for t in part.trials] == [t.config for t in whole.trials]
    assert [t.id for t in part.front] == [t.id for t in whole.front]
    assert part.history.reference == whole.history.reference


@pytest.mark.parametrize("method", METHODS)
def test_failures_and_running_trials_are_survived(method: str) -> None:
    search = make(method)
    for number in range(24):
        (trial,) = search.ask()
        if number % 6 == 1:
            search.tell(trial, error=("diverged", "crashed", "oom")[number % 3])
        elif number % 6 != 2:
            search.tell(trial, {"acc": accuracy(trial.config)})
    new = search.ask(4)
    keys = [str(trial.config) for trial in search.trials]
    assert len(set(keys)) == len(keys)
    assert not [t.info for t in new if t.source == "fallback"]


def test_a_round_has_a_config_of_each_subspace() -> None:
    search = Search(TREE, objectives=TEXTS, features=tree_sizes)
    for trial in search.ask(10):
        search.tell(trial, tree_values(trial.config))
    batch = search.ask(2)
    assert {trial.subspace for trial in batch} == {0, 1}
    assert [trial.info["acquisition"] for trial in batch] == ["log_ehvi", "log_ehvi"]
    assert all(trial.acquisition is not None for trial in batch)


def test_two_trained_objectives_have_a_surrogate_each() -> None:
    search = Search(TREE, objectives=["acc max", "energy min"], seed=2)
    for _ in range(16):
        (trial,) = search.ask()
        search.tell(trial, tree_values(trial.config))
    assert {trial.source for trial in search.trials} == {"design", "model"}
    assert {trial.config["width"] for trial in search.front} >= {4, 8, 16}


def test_three_objectives_of_which_one_is_known() -> None:
    texts = ["acc max", "energy min", "params min"]
    search = Search(TREE, objectives=texts, features=tree_sizes, seed=2)
    for _ in range(14):
        (trial,) = search.ask()
        search.tell(trial, tree_values(trial.config))
    assert {trial.source for trial in search.trials} == {"design", "model"}
    assert search.history.reference is not None
    assert search.history.reference.is_log == (False, False, True)


def test_under_noise_all_trials_of_a_front_have_estimates() -> None:
    search = make("attnbo")
    rng = np.random.default_rng(0)
    for _ in range(50):
        (trial,) = search.ask()
        search.tell(trial, {"acc": accuracy(trial.config) + rng.normal(0, 0.05)})
    search.ask()
    assert all(trial.estimate is not None for trial in search.front)
    assert ESTIMATES not in search.trials[-1].info


def test_the_design_is_large_enough_for_a_reference_point() -> None:
    search = make("attnbo")
    drive(search, 11)
    assert [trial.source for trial in search.trials] == ["design"] * 10 + ["model"]
    single = Search(SPACE, "attnbo", mode="max")
    drive(single, 3, plain=True)
    assert [trial.source for trial in single.trials] == ["design"] * 2 + ["model"]
