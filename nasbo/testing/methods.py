"""Contract of methods: properties that every search relies on."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from nasbo.feasibility import failing_regions
from nasbo.history import Trial
from nasbo.methods import Method, make_method
from nasbo.search import Search
from nasbo.space import Config, load_space
from nasbo.testing.process import end_other_process, in_another_process
from nasbo.testing.searches import MethodCase, after_design, check_configs, suggestions
from nasbo.testing.spaces import BRANCHES, SPACES, OnSpaces, branch_value, objective


class _MethodTests(OnSpaces):
    """Fixtures and settings of the contracts of methods.

    A subclass sets ``method``, or has a fixture ``case`` of its own, e.g. with parameters.

    Attributes:
        method: as in ``MethodCase``.
        options: as in ``MethodCase``.
        is_blind: as in ``MethodCase``.
        spaces: as in ``OnSpaces``. Tests of odd results, limits and failures have their own spaces.
    """

    method: ClassVar[type[Method] | str]
    options: ClassVar[Mapping[str, Any]] = {}
    is_blind: ClassVar[bool] = False

    @pytest.fixture
    def case(self) -> MethodCase:
        """The method under test."""
        return MethodCase(self.method, self.options, self.is_blind)

    @classmethod
    def teardown_class(cls) -> None:
        """End the other process."""
        end_other_process()


class MethodContract(_MethodTests):
    """Tests that a method must pass: seconds for one that decides in milliseconds.

    If the method raises or suggests an excluded config, the fallback of ``Method`` suggests another
    one; these tests allow hardly any.
    """

    def test_configs_are_valid_new_and_the_methods_own(self, case: MethodCase, shape: str) -> None:
        search = after_design(case, load_space(self.spaces[shape]))
        asked = search.ask(2)
        check_configs(search)
        assert len(asked) == (1 if shape == "finite" else 2)
        if shape != "finite":  # one config is left there, which the method need not find
            assert own(asked) == 2, reasons(asked)

    def test_same_seed_same_suggestions(self, case: MethodCase, home: str) -> None:
        first = suggestions(case, self.spaces[home])
        for draw in (random.random, np.random.random, lambda: torch.rand(1)):
            draw()  # the state of global generators must have no effect
        assert suggestions(case, self.spaces[home]) == first

    def test_another_process_suggests_the_same(self, case: MethodCase, home: str) -> None:
        space = self.spaces[home]
        there = in_another_process(suggestions, replace(case, method=case.name), space)
        assert there == suggestions(case, space)

    def test_stopping_and_resuming_changes_nothing(
        self, case: MethodCase, home: str, tmp_path: Path
    ) -> None:
        space = load_space(self.spaces[home])
        configs: list[list[Config]] = []
        for stop in (None, 9):
            journal = tmp_path / f"{stop}.jsonl"
            search = case.search(space, seed=3, journal=journal)
            for step in range(10):
                if step == stop:
                    search.close()
                    search = case.search(space, seed=3, journal=journal)
                (trial,) = search.ask(1)
                search.tell(trial, objective(space, trial.config))
            configs.append([trial.config for trial in search.trials])
            search.close()
        assert configs[0] == configs[1]

    def test_batches_have_no_duplicates_and_no_fallback(self, case: MethodCase, home: str) -> None:
        search = after_design(case, load_space(self.spaces[home]))
        asked = search.ask(6)
        check_configs(search)
        assert own(asked) == 6, reasons(asked)

    def test_running_configs_are_not_suggested_again(self, case: MethodCase, home: str) -> None:
        search = after_design(case, load_space(self.spaces[home]))
        asked = [search.ask(1)[0] for _ in range(3)]
        check_configs(search)
        assert own(asked) == 3, reasons(asked)

    def test_discrete_spaces_of_which_much_is_known_hardly_need_the_fallback(
        self, case: MethodCase
    ) -> None:
        space = load_space(SPACES["discrete"])
        search = case.search(space, seed=1)
        known = sorted(space.subspace(0).all_configs(), key=lambda config: objective(space, config))
        for config in known[:70]:
            search.observe(config, objective(space, config))
        search.ask(2)
        asked = [trial for _ in range(5) for trial in search.ask(2)]
        check_configs(search)
        assert fallbacks(asked) <= 1, reasons(asked)

    def test_histories_of_nothing_and_of_one_result(self, case: MethodCase) -> None:
        search = case.search(load_space(SPACES["one_leaf"]))
        assert [trial.source for trial in search.ask(3)] == ["design", "design", "fallback"]
        search.tell(0, 1.0)
        (trial,) = search.ask(1)
        assert trial.source == "fallback"
        check_configs(search)

    def test_constant_scores_are_survived(self, case: MethodCase) -> None:
        search = case.search(load_space(SPACES["nested"]))
        for trial in search.ask(8):
            search.tell(trial, 1.0)
        asked = search.ask(2)
        assert own(asked) == 2, reasons(asked)

    def test_failures_are_survived(self, case: MethodCase) -> None:
        space = load_space(SPACES["nested"])
        search = case.search(space)
        causes = ["diverged", "oom", "crashed", "lost", "invalid"]
        for trial, cause in zip(search.ask(8), [*causes, None, None, None], strict=True):
            value = objective(space, trial.config) if cause is None else None
            search.tell(trial, value, error=cause)
        asked = search.ask(2)
        check_configs(search)
        assert own(asked) == 2, reasons(asked)

    def test_results_decide_what_comes_next(self, case: MethodCase) -> None:
        """Two searches with opposite scores suggest different configs,
        unless the method is blind.
        """
        space = load_space(SPACES["flat"])
        configs = []
        for sign in (1.0, -1.0):
            search = case.search(space, seed=1)
            for trial in search.ask(26):
                search.tell(trial, sign * objective(space, trial.config))
            configs.append([trial.config for trial in search.ask(2)])
        assert (configs[0] == configs[1]) == case.is_blind

    def test_limits_are_kept(self, case: MethodCase) -> None:
        """Only the lowest quarter of the first number of each subspace is allowed."""
        space = load_space(SPACES["nested"])

        def is_low(config: Config) -> bool:
            x = space.subspace_of(config).encode(config)
            return not len(x) or float(x[0]) <= 0.25

        search = case.search(space, seed=4, limits=is_low)
        for n in (8, 3):
            for trial in search.ask(n):
                search.tell(trial, objective(space, trial.config))
        assert all(is_low(trial.config) for trial in search.trials)
        assert [trial.source for trial in search.trials[:8]] == ["design"] * 8
        assert fallbacks(search.trials) <= 1, reasons(search.trials)

    def test_failing_regions_are_left_alone(self, case: MethodCase) -> None:
        """All trials of a branch fail: its configs are suggested only as
        probes, when one is due.
        """
        search = Search(BRANCHES, "random", seed=2)
        while not (regions := failing_regions(search.history)):
            _run_one(search)
        for n_probes in (0, 1):
            method = make_method(case.name, search.space, 1, **case.options)
            chosen = method.suggest(search.history, 6)
            wanted = ["probe"] * n_probes + ["model"] * (6 - n_probes)
            assert [one.source for one in chosen] == wanted
            assert [_fails(one.config) for one in chosen] == [s == "probe" for s in wanted]
            while len(search.history.rounds) < regions[0].next_probe:
                _run_one(search)


class LongMethodContract(_MethodTests):
    """Tests of whole searches, as a method's last check: minutes for one
    that decides in a second.
    """

    def test_long_searches_in_full(self, case: MethodCase, large: str) -> None:
        """Failures of all kinds, two trials at a time, at most 10 % fallbacks."""
        space = load_space(self.spaces[large])
        search = case.search(space, seed=5)
        rng = np.random.default_rng(0)
        running = search.ask(2)
        for step in range(40):
            trial = running.pop(int(rng.integers(len(running))))
            if step % 9 == 4:
                search.tell(trial, error=["diverged", "oom", "crashed"][step % 3])
            else:
                search.tell(trial, objective(space, trial.config))
            running += search.ask(1)
        check_configs(search)
        assert fallbacks(search.trials) <= 0.1 * len(search.trials), reasons(search.trials)

    def test_finite_spaces_are_used_up(self, case: MethodCase) -> None:
        space = load_space(SPACES["finite"])
        search = case.search(space)
        while trials := search.ask(1):
            search.tell(trials[0], objective(space, trials[0].config))
        assert len(search.trials) == 5
        check_configs(search)


def own(trials: list[Trial]) -> int:
    """Number of configs that the method itself has suggested."""
    return sum(trial.source == "model" for trial in trials)


def fallbacks(trials: list[Trial]) -> int:
    """Number of uniform configs that replace those of the method."""
    return sum(trial.source == "fallback" for trial in trials)


def reasons(trials: list[Trial]) -> list[Any]:
    """Reasons why configs are not those of the method."""
    return [(trial.id, trial.info["reason"]) for trial in trials if "reason" in trial.info]


def _fails(config: Config) -> bool:
    return bool(config["kind"] == "b")


def _run_one(search: Search) -> None:
    """Run a trial on ``BRANCHES`` that crashes in the branch with the best values."""
    (trial,) = search.ask(1)
    if _fails(trial.config):
        search.tell(trial, error="crashed")
    else:
        search.tell(trial, branch_value(trial.config))
