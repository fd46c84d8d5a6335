"""Common behaviour of methods: design, counted fallbacks, no repeats, fixed randomness."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from nasbo.history import config_key
from nasbo.methods import Method, Suggestion, Task, design_size
from nasbo.methods.base import MANY_SUBSPACES_DESIGN, draw, draw_anywhere
from nasbo.methods.exclusion import Excluded
from nasbo.methods.random import RandomSearch
from nasbo.search import Search
from nasbo.space import Config, Space, load_space


class Scripted(Method):
    """Proposes given configs, or raises."""

    def __init__(self, space: Space, seed: int = 0) -> None:
        super().__init__(space, seed)
        self.script: list[Config] | Exception = []
        self.tasks: list[Task] = []

    def propose(self, task: Task) -> list[Suggestion]:
        self.tasks.append(task)
        if isinstance(self.script, Exception):
            raise self.script
        return [Suggestion(config) for config in self.script]


def _searched(space: Space, n: int) -> Search:
    search = Search(space, method="random")
    for trial in search.ask(n):
        search.tell(trial, float(trial.id))
    return search


def test_design_sizes(nested_space: Space, thousands_space: Space, finite_space: Space) -> None:
    assert design_size(nested_space) == 8
    assert design_size(finite_space) == 2 + 1 + 1
    assert design_size(thousands_space) == MANY_SUBSPACES_DESIGN


def test_failing_method_falls_back_is_logged_and_says_why(
    nested_space: Space, caplog: pytest.LogCaptureFixture
) -> None:
    search, method = _searched(nested_space, 8), Scripted(nested_space)
    method.script = ArithmeticError("not positive definite")
    with caplog.at_level(logging.WARNING):
        suggestions = method.suggest(search.history, 3)
    assert [s.source for s in suggestions] == ["fallback"] * 3
    assert {s.info["reason"] for s in suggestions} == {"ArithmeticError: not positive definite"}
    assert "Scripted failed: falling back" in caplog.text


def test_interrupt_is_not_swallowed(nested_space: Space) -> None:
    search = _searched(nested_space, 8)

    class Interrupted(Scripted):
        def propose(self, task: Task) -> list[Suggestion]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Interrupted(nested_space).suggest(search.history, 1)


def test_known_configs_are_replaced(nested_space: Space) -> None:
    search, method = _searched(nested_space, 8), Scripted(nested_space)
    known = [trial.config for trial in search.trials[:2]]
    fresh = {"top": "right", "gamma": 0.123, "flag": True}
    method.script = [*known, fresh, fresh]
    suggestions = method.suggest(search.history, 3)
    assert [s.source for s in suggestions] == ["model", "fallback", "fallback"]
    assert suggestions[0].config == fresh
    assert len({config_key(s.config) for s in suggestions}) == 3


def test_no_more_than_asked_for(nested_space: Space) -> None:
    search, method = _searched(nested_space, 8), Scripted(nested_space)
    method.script = [{"top": "right", "gamma": x / 10, "flag": True} for x in range(9)]
    suggestions = method.suggest(search.history, 4)
    assert [s.config for s in suggestions] == method.script[:4]


def test_task_tells_rows_pending_and_taken(nested_space: Space) -> None:
    search, method = _searched(nested_space, 8), Scripted(nested_space)
    (running,) = search.ask(1)
    method.suggest(search.history, 2)
    (task,) = method.tasks
    assert task.n == 2
    assert task.pending == [running.config]
    assert [score for _, score in task.rows] == [-float(i) for i in range(8)]
    assert all(trial.config in task.taken for trial in search.trials)
    observations = task.data
    assert len(observations.x) == len(observations.subspaces) == len(observations.scores) == 8
    assert observations.n_design == sum(t.source == "design" for t in search.trials[:8])


def test_a_config_that_failed_without_a_word_counts_as_tried(nested_space: Space) -> None:
    search, method = _searched(nested_space, 8), Scripted(nested_space)
    crashed, diverged, running = search.ask(3)
    search.tell(crashed, error="crashed")
    search.tell(diverged, error="diverged")
    method.suggest(search.history, 1)
    (task,) = method.tasks
    assert task.pending == [crashed.config, running.config]
    assert [trial.id for trial, _ in task.rows] == [*range(8), diverged.id]


def test_randomness_depends_on_seed_and_count_alone(nested_space: Space) -> None:
    history = _searched(nested_space, 8).history
    first, second = (RandomSearch(nested_space, 5).suggest(history, 3) for _ in range(2))
    assert first == second
    assert RandomSearch(nested_space, 6).suggest(history, 3) != first
    assert RandomSearch(nested_space, 5).suggest(_searched(nested_space, 9).history, 3) != first


def test_draw_finds_the_last_untried(finite_space: Space) -> None:
    rng = np.random.default_rng(0)
    everything = [c for sub in finite_space.subspaces() for c in sub.all_configs()]
    for missing in everything:
        taken = Excluded(config_key(c) for c in everything if c != missing)
        assert draw_anywhere(finite_space, taken, rng) == missing
    assert draw_anywhere(finite_space, Excluded(map(config_key, everything)), rng) is None


def test_draw_gives_up_where_nothing_can_be_enumerated() -> None:
    space = load_space({"n": {"type": "int", "range": [0, 30_000]}})
    taken = Excluded(config_key({"n": n}) for n in range(30_000))
    assert draw(space.subspace(0), taken, np.random.default_rng(0)) is None
