"""What every method of the registry promises, on small spaces of every shape."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from nasbo.errors import NasboError
from nasbo.history import config_key
from nasbo.methods import METHODS, design_size, make_method
from nasbo.search import Search
from nasbo.space import Config, Space, load_space
from tests.conftest import SPACES

ROOT = Path(__file__).parents[2]
PACKAGES = {"smac": "smac", "tpe": "optuna"}
SLOW = ("smac",)
"""Its forests take a second for each suggestion: in full with ``make test-all`` only."""
NAMES = [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in sorted(METHODS)]
QUICK = sorted(set(METHODS) - set(SLOW))


def objective(space: Space, config: Config) -> float:
    """A smooth function of the numbers, with an offset for each subspace."""
    subspace = space.subspace_of(config)
    x = subspace.encode(config)
    wanted = 0.3 + 0.1 * (subspace.index % 4)
    return float(((x - wanted) ** 2).sum()) + math.sin(subspace.index)


def after_design(name: str, space: Space, seed: int = 0) -> Search:
    """A search whose design has ended, one config badly, and with one config still running."""
    search = Search(space, method=name, seed=seed)
    trials = search.ask(design_size(space))
    rng = np.random.default_rng(seed)
    for config in (space.sample(rng) for _ in range(4 if space.n_subspaces == 1 else 0)):
        if config not in [trial.config for trial in search.trials]:
            search.observe(config, objective(space, config))
    for trial in trials[1:-1]:
        search.tell(trial, objective(space, trial.config))
    search.tell(trials[0], float("nan"))
    return search


def check(space: Space, search: Search) -> None:
    for trial in search.trials:
        assert space.canonical(trial.config) == trial.config
        assert json.loads(json.dumps(trial.config)) == trial.config
    keys = [config_key(trial.config) for trial in search.trials]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("shape", sorted(SPACES))
@pytest.mark.parametrize("name", NAMES)
def test_configs_are_valid_new_and_the_methods_own(name: str, shape: str) -> None:
    space = load_space(SPACES[shape])
    search = after_design(name, space)
    asked = search.ask(2)
    check(space, search)
    assert len(asked) == (1 if shape == "finite" else 2)
    if shape != "finite":
        reasons = [trial.info.get("reason") for trial in asked]
        assert [trial.source for trial in asked] == ["model", "model"], reasons


@pytest.mark.parametrize("name", NAMES)
def test_stopping_and_resuming_changes_nothing(name: str, tmp_path: Path) -> None:
    space = load_space(SPACES["nested"])
    configs: list[list[Config]] = []
    for stop in (None, 9):
        journal = tmp_path / f"{stop}.jsonl"
        search = Search(space, method=name, seed=3, journal=journal)
        for step in range(10):
            if step == stop:
                search.close()
                search = Search(space, method=name, seed=3, journal=journal)
            (trial,) = search.ask(1)
            search.tell(trial, objective(space, trial.config))
        configs.append([trial.config for trial in search.trials])
        search.close()
    assert configs[0] == configs[1]


@pytest.mark.parametrize("name", NAMES)
def test_batches_have_no_duplicates_and_hardly_any_fallback(name: str) -> None:
    space = load_space(SPACES["nested"])
    search = after_design(name, space)
    asked = search.ask(6)
    check(space, search)
    assert [trial.source for trial in asked] == ["model"] * 6


@pytest.mark.parametrize("name", NAMES)
def test_discrete_spaces_of_which_much_is_known_hardly_need_the_fallback(name: str) -> None:
    space = load_space(SPACES["discrete"])
    search = Search(space, method=name, seed=1)
    known = sorted(space.subspace(0).all_configs(), key=lambda config: objective(space, config))
    for config in known[:70]:
        search.observe(config, objective(space, config))
    search.ask(2)
    asked = [trial for _ in range(5) for trial in search.ask(2)]
    check(space, search)
    assert [trial.source for trial in asked].count("fallback") <= 1


@pytest.mark.parametrize("name", NAMES)
def test_histories_of_nothing_and_of_one_result(name: str) -> None:
    space = load_space(SPACES["one_leaf"])
    search = Search(space, method=name)
    assert [trial.source for trial in search.ask(3)] == ["design", "design", "fallback"]
    search.tell(0, 1.0)
    (trial,) = search.ask(1)
    assert trial.source == "fallback"
    check(space, search)


@pytest.mark.parametrize("name", NAMES)
def test_constant_scores_are_survived(name: str) -> None:
    search = Search(SPACES["nested"], method=name)
    for trial in search.ask(8):
        search.tell(trial, 1.0)
    assert [trial.source for trial in search.ask(2)] == ["model", "model"]


@pytest.mark.parametrize("name", NAMES)
def test_results_decide_what_comes_next(name: str) -> None:
    """Two searches with opposite scores go different ways, but for random search."""
    space = load_space(SPACES["flat"])
    configs = []
    for sign in (1.0, -1.0):
        search = Search(space, method=name, seed=1)
        for trial in search.ask(26):
            search.tell(trial, sign * objective(space, trial.config))
        configs.append([trial.config for trial in search.ask(2)])
    assert (configs[0] == configs[1]) == (name == "random")


def suggestions(name: str) -> list[Config]:
    """What a method says after a design on a nested space."""
    search = after_design(name, load_space(SPACES["nested"]), seed=2)
    return [trial.config for trial in search.ask(2)]


PROGRAM = """
import json, sys, torch
from tests.contracts.test_methods import %s as names, suggestions
torch.set_num_threads(int(sys.argv[1]))
print(json.dumps({name: suggestions(name) for name in names}))
"""


@pytest.mark.slow
def test_another_process_suggests_the_same_with_a_slow_method() -> None:
    _compare_with_another_process("SLOW", SLOW)


def test_another_process_suggests_the_same() -> None:
    _compare_with_another_process("QUICK", QUICK)


def _compare_with_another_process(which: str, names: Sequence[str]) -> None:
    run = [sys.executable, "-W", "ignore", "-c", PROGRAM % which, str(torch.get_num_threads())]
    done = subprocess.run(run, capture_output=True, check=True, cwd=ROOT)
    there = json.loads(done.stdout.splitlines()[-1])
    assert there == {name: suggestions(name) for name in names}


@pytest.mark.parametrize(("name", "package"), sorted(PACKAGES.items()))
def test_a_missing_package_is_named_with_the_way_to_get_it(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [m for m in sys.modules if m.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(NasboError, match=f"method '{name}' needs the package .*pip install"):
        make_method(name, load_space(SPACES["flat"]))


@pytest.mark.slow
@pytest.mark.parametrize("shape", sorted(set(SPACES) - {"finite"}))
@pytest.mark.parametrize("name", NAMES)
def test_long_searches_in_full(name: str, shape: str) -> None:
    """Failures of all kinds, two trials at a time, at most 10 % fallbacks."""
    space = load_space(SPACES[shape])
    search = Search(space, method=name, seed=5)
    rng = np.random.default_rng(0)
    running = search.ask(2)
    for step in range(40):
        trial = running.pop(int(rng.integers(len(running))))
        if step % 9 == 4:
            search.tell(trial, error=["diverged", "oom", "crashed"][step % 3])
        else:
            search.tell(trial, objective(space, trial.config))
        running += search.ask(1)
    check(space, search)
    sources = [trial.source for trial in search.trials]
    assert sources.count("fallback") <= 0.1 * len(sources)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_finite_spaces_are_used_up(name: str) -> None:
    space = load_space(SPACES["finite"])
    search = Search(space, method=name)
    while trials := search.ask(1):
        search.tell(trials[0], objective(space, trials[0].config))
    assert len(search.trials) == 5
    check(space, search)
