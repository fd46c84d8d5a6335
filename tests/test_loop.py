"""Loop in one process: rounds, the budget, failing objectives, interruption and resume."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from nasbo.history import Trial
from nasbo.loop import run_loop
from nasbo.search import Search
from nasbo.search.schedule import design_left, next_round_size
from nasbo.space import Config, Space, load_space


def _search(space: Any = "svm", **settings: Any) -> Search:
    return Search(space, method="random", **settings)


def _objective(config: Config) -> float:
    return float(config["C"])


def test_design_is_round_zero_then_one_config_per_subspace() -> None:
    history = run_loop(_search(), _objective, n_trials=8 + 4 + 4)
    assert [len([t for t in history.trials if t.round == n]) for n in range(3)] == [8, 4, 4]
    assert [r.size for r in history.rounds] == [8, 4, 4]
    assert Counter(t.source for t in history.trials) == {"design": 8, "model": 8}


def test_budget_cuts_the_last_round() -> None:
    history = run_loop(_search(), _objective, n_trials=10)
    assert [r.size for r in history.rounds] == [8, 2]
    assert (history.n_ended, history.open_runs) == (10, [])


@pytest.mark.parametrize("batch", [1, 3])
def test_batch_sets_the_size_of_later_rounds(batch: int) -> None:
    history = run_loop(_search(), _objective, n_trials=8 + 2 * batch, batch=batch)
    assert [r.size for r in history.rounds] == [8, batch, batch]


def test_every_ending_counts_once() -> None:
    def fails_often(config: Config) -> float:
        if config["kernel"] == "poly":
            raise RuntimeError("no luck")
        return float("nan") if config["kernel"] == "rbf" else _objective(config)

    ended: list[Trial] = []
    history = run_loop(_search(), fails_often, n_trials=12, on_end=ended.append)
    assert history.n_ended == 12 == len(ended)
    assert history.cause_counts()["crashed"] == sum(t.config["kernel"] == "poly" for t in ended)
    assert history.cause_counts()["diverged"] == sum(t.config["kernel"] == "rbf" for t in ended)
    assert {t.message for t in ended if t.cause == "crashed"} == {"RuntimeError: no luck"}


def test_all_failing_still_ends() -> None:
    def fails(config: Config) -> float:
        raise ValueError("never")

    history = run_loop(_search(), fails, n_trials=12)
    assert history.state_counts() == {"failed": 12}
    assert history.best is None


def test_interrupt_passes_and_the_loop_continues(tmp_path: Path) -> None:
    path, calls = tmp_path / "run.jsonl", []

    def interrupted(config: Config) -> float:
        calls.append(config)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return _objective(config)

    with _search(journal=path) as search, pytest.raises(KeyboardInterrupt):
        run_loop(search, interrupted, n_trials=12)
    with _search(journal=path) as search:
        history = run_loop(search, _objective, n_trials=12)
        whole = run_loop(_search(), _objective, n_trials=12)
    assert [t.config for t in history.trials] == [t.config for t in whole.trials]
    assert history.n_ended == 12


def test_used_up_space_ends_the_loop(finite_space: Space) -> None:
    history = run_loop(_search(finite_space), lambda config: 1.0, n_trials=50)
    assert history.n_ended == 5


def test_round_sizes(thousands_space: Space) -> None:
    history = run_loop(_search(), _objective, n_trials=8)
    assert next_round_size(history) == 4
    assert next_round_size(history, slots=3) == 4
    assert next_round_size(history, slots=9) == 9
    assert next_round_size(history, batch=2, slots=9) == 2
    many = _search(thousands_space)
    assert next_round_size(many.history, slots=3) == 24
    run_loop(many, lambda config: 1.0, n_trials=24)
    assert next_round_size(many.history, slots=3) == 3


def test_design_left_counts_by_subspace() -> None:
    search = _search()
    for number in range(10):
        search.observe({"C": 1.0 + number, "kernel": "linear"}, 1.0)
    assert design_left(search.history) == 6
    history = run_loop(search, _objective, n_trials=10)
    assert [r.size for r in history.rounds] == [6, 4]
    assert [t.source for t in history.trials if t.round == 0] == ["design"] * 6


def test_one_leaf() -> None:
    space = load_space({"x": {"type": "float", "range": [0, 1]}})
    history = run_loop(_search(space), lambda config: config["x"], n_trials=4)
    assert [r.size for r in history.rounds] == [2, 1, 1]
