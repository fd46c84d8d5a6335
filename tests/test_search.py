"""Ask/tell interface with random search: the contract of ask, tell, observe, best and restart."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import nasbo
from nasbo.errors import ConfigError, JournalError, NasboError, SpaceError
from nasbo.history import History, Trial, config_key, replay
from nasbo.history.journal import read_events
from nasbo.methods import Suggestion
from nasbo.methods.random import RandomSearch
from nasbo.search import Search
from nasbo.space import Space
from nasbo.testing import SPACES


def _search(space: Any = "svm", **settings: Any) -> Search:
    return Search(space, **{"method": "random", **settings})


def _value(trial: Trial) -> float:
    return sum(value for value in trial.config.values() if isinstance(value, int | float))


def _known(history: History) -> list[tuple[Any, ...]]:
    return [(t.id, config_key(t.config), t.source, t.round, t.value) for t in history.trials]


def test_the_documented_example(tmp_path: Path) -> None:
    search = nasbo.Search("simulation", method="random", mode="min", seed=0)
    for trial in search.ask(4):
        search.tell(trial, _value(trial))
    config = {"x1": 0, "r8": 1, "x2": 0, "x4": -1.0}
    search.observe(config, -5)
    assert (search.best.config, search.best.value) == (config, -5.0)


@pytest.mark.parametrize("space", ["svm", "xgboost", "cash", "simulation", "nas_cifar10"])
def test_design_is_exactly_two_per_subspace_then_the_model(space: str) -> None:
    search = _search(space)
    n = search.space.n_subspaces
    for size in (1, 3, n, 2 * n):
        for trial in search.ask(size):
            search.tell(trial, _value(trial))
    design = [t for t in search.trials if t.source == "design"]
    assert Counter(t.subspace for t in design) == dict.fromkeys(range(n), 2)
    assert [t.id for t in design] == list(range(2 * n))
    assert {t.source for t in search.trials[2 * n :]} == {"model"}


def test_design_counts_when_handed_out_even_if_it_fails() -> None:
    search = _search()
    for trial in search.ask(8):
        search.tell(trial, error="crashed" if trial.id > 2 else None, value=1.0)
    assert [trial.source for trial in search.ask(2)] == ["model", "model"]


def test_observed_results_count_towards_their_subspace() -> None:
    search = _search()
    for value in (1.0, 2.0, 3.0):
        search.observe({"C": value, "kernel": "linear"}, value)
    search.observe({"C": 1.0, "kernel": "rbf", "gamma": 1.0}, 0.5)
    design = search.ask(5)
    assert Counter(t.subspace for t in design) == {1: 2, 2: 2, 3: 1}
    assert {t.source for t in design} == {"design"}
    assert search.ask(1)[0].source == "model"
    assert search.history.n_suggested == 6


def test_design_is_capped_where_subspaces_are_many(thousands_space: Space) -> None:
    search = _search(thousands_space)
    trials = search.ask(60)
    assert len(trials) == 60
    for trial in trials:
        search.tell(trial, 1.0)
    assert {trial.source for trial in search.ask(5)} == {"model"}


def test_no_config_twice_even_while_running(any_space: Space) -> None:
    search = _search(any_space)
    keys = [config_key(trial.config) for _ in range(6) for trial in search.ask(4)]
    assert len(keys) == len(set(keys))
    for trial in search.trials:
        assert any_space.subspace_of(trial.config).index == trial.subspace
        assert json.loads(json.dumps(trial.config)) == trial.config


def test_used_up_space_gives_fewer_then_none(finite_space: Space) -> None:
    search = _search(finite_space)
    assert [len(search.ask(2)), len(search.ask(2))] == [2, 2]
    assert len(search.ask(4)) == 1
    assert search.ask(3) == []
    assert {config_key(t.config) for t in search.trials} == {
        config_key(c) for sub in finite_space.subspaces() for c in sub.all_configs()
    }


@pytest.mark.parametrize("n", [0, -1])
def test_ask_needs_a_count(n: int) -> None:
    with pytest.raises(NasboError, match="n must be an integer >= 1"):
        _search().ask(n)


def test_told_twice_is_refused() -> None:
    search = _search()
    (trial,) = search.ask(1)
    search.tell(trial, 1.0)
    for again in (lambda: search.tell(trial, 2.0), lambda: search.tell(trial.id, error="lost")):
        with pytest.raises(NasboError, match="trial 0 has been told before: it is finished"):
            again()
    assert search.best.value == 1.0


@pytest.mark.parametrize("number", [5, -1])
def test_unknown_trials_are_refused(number: int) -> None:
    with pytest.raises(NasboError, match="there is no trial"):
        _search().tell(number, 1.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_divergence(value: float) -> None:
    search = _search()
    first, second, third = search.ask(3)
    search.tell(first, value)
    search.tell(second, 4.0)
    search.tell(third, 2.0)
    assert (search.trials[0].state, search.trials[0].cause) == ("failed", "diverged")
    assert [score for _, score in search.history.rows()] == [-4.0, -4.0, -2.0]
    assert search.best.id == third.id


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({}, "needs a value or an error"),
        ({"error": "bored"}, "error must be one of diverged.*got 'bored'"),
        ({"value": "high"}, "a value must be a number, got 'high'"),
        ({"value": [1.0, 2.0]}, "a value must be a number"),
        ({"value": 10**400}, "a value must be a number"),
    ],
)
def test_bad_results_are_refused_and_change_nothing(told: dict[str, Any], words: str) -> None:
    search = _search()
    (trial,) = search.ask(1)
    with pytest.raises(NasboError, match=words):
        search.tell(trial, **told)
    search.tell(trial, 1.0)
    assert search.trials[0].state == "finished"


@pytest.mark.parametrize("value", [math.nan, math.inf, "x", None])
def test_observed_values_must_be_finite(value: Any) -> None:
    search = _search()
    with pytest.raises(NasboError, match="value must be"):
        search.observe({"C": 1.0, "kernel": "linear"}, value)
    with pytest.raises(ConfigError, match="'kernel' is missing"):
        search.observe({"C": 1.0}, 1.0)
    assert search.trials == []


def test_what_was_stopped_keeps_its_value_and_is_never_best() -> None:
    search = _search(mode="max")
    first, second, third = search.ask(3)
    search.tell(first, 0.9, error="stopped", step=3)
    search.tell(second, 0.95, error="crashed")
    search.tell(third, 0.1)
    assert (search.trials[0].first.value, search.trials[0].step) == (0.9, 3)
    assert (search.best.id, search.best.value) == (2, 0.1)
    assert [trial.id for trial, _ in search.history.rows()] == [0, 2], "its last value teaches"


def test_best_before_anything() -> None:
    with pytest.raises(NasboError, match="nothing has finished"):
        _ = _search().best


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"mode": "up"}, NasboError, "mode must be 'min' or 'max', got 'up'"),
        ({"method": "guess"}, NasboError, "unknown method 'guess'; known: .*random"),
        ({"seed": -1}, NasboError, "seed must be an integer >= 0, got -1"),
        ({"seed": "x"}, NasboError, "seed must be an integer"),
        ({"speed": 3}, NasboError, "'random' has no option 'speed'"),
        ({"mod": "min"}, NasboError, r"no option 'mod'.*: space, method, mode.* mean 'mode'\?"),
        ({"method": "atnbo"}, NasboError, r"'atnbo' \(did you mean 'attnbo'\?\); known"),
        ({"space": "nowhere"}, SpaceError, "nowhere: no such file"),
        ({"space": {"a": 1}}, SpaceError, "must be a mapping with a type"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        _search(**settings)


def _run(search: Search, n: int) -> None:
    for _ in range(n):
        (trial,) = search.ask(1)
        search.tell(trial, _value(trial))


def test_restart_continues_as_if_never_stopped(tmp_path: Path) -> None:
    whole = _search(seed=3)
    _run(whole, 12)
    for stop in range(0, 12, 5):
        path = tmp_path / f"{stop}.jsonl"
        with _search(seed=3, journal=path) as search:
            _run(search, stop)
        with _search(seed=3, journal=path) as search:
            _run(search, 12 - stop)
            assert _known(search.history) == _known(whole.history)


def test_restart_hands_out_open_trials_first(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with _search(journal=path) as search:
        handed = search.ask(4)
        search.tell(handed[1], 1.0)
    with _search(journal=path) as search:
        first, *others = search.ask(5)
        assert [first.id, *(t.id for t in others)] == [0, 2, 3, 4, 5]
        assert first.config == handed[0].config
        assert len(search.trials[0].attempts) == 2
        assert len(search.trials[1].attempts) == 1
        kinds = [item["event"] for item in read_events(path)]
        assert kinds.count("opened") == 1  # shows observers when the earlier trials ended
        assert kinds.index("opened") > kinds.index("ended")
        search.tell(first, 2.0)
        assert search.best.value == 1.0


def test_what_was_handed_out_or_told_is_on_disk_at_once(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with _search(journal=path) as search:
        for trial in search.ask(3):
            assert _known(replay(search.space, "min", read_events(path)))[trial.id][0] == trial.id
        search.tell(0, 7.5)
        search.report(1, 2, 0.5, {"loss": math.nan})
        search.observe({"C": 1.0, "kernel": "linear"}, 0.25)
        seen = replay(search.space, "min", read_events(path))
        assert _known(seen) == _known(search.history)
        assert seen.trials[1].curve == [(2, 0.5)]
        kinds = [item["event"] for item in read_events(path)]
    assert kinds[:5] == ["settings", "round", "suggested", "suggested", "suggested"]
    assert kinds[5:] == ["started"] * 3 + ["ended", "reported", "observed"]


def test_journal_of_other_settings_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with _search(journal=path, seed=1) as search:
        _run(search, 2)
    before = path.read_bytes()
    with pytest.raises(NasboError, match="begun with seed=1, not 2"):
        _search(journal=path, seed=2)
    with pytest.raises(JournalError, match="another search space"):
        _search("cash", journal=path, seed=1)
    with pytest.raises(JournalError, match="mode 'min', not 'max'"):
        _search(journal=path, seed=1, mode="max")
    assert path.read_bytes() == before
    with _search(journal=path, seed=1) as search:
        with pytest.raises(JournalError, match="is being written by"):
            _search(journal=path, seed=1)
        _run(search, 1)


def test_configs_are_copies() -> None:
    search = _search(SPACES["repeated"])
    (trial,) = search.ask(1)
    before = config_key(trial.config)
    trial.config["x"].append(99)
    search.tell(trial, 1.0)
    search.best.config.clear()
    assert config_key(search.trials[0].config) == before
    assert search.is_known(search.best.config)


def test_same_seed_same_configs_also_in_another_process() -> None:
    code = """
import json, nasbo
search = nasbo.Search("cash", method="random", seed=5)
told = []
for size in (3, 12, 4):
    for trial in search.ask(size):
        told.append([trial.config, trial.source])
        search.tell(trial, float(trial.id))
print(json.dumps(told))
"""
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    search = _search("cash", seed=5)
    here = [[t.config, t.source] for size in (3, 12, 4) for t in _ask_and_tell(search, size)]
    assert here == json.loads(runs[0])
    other = _search("cash", seed=6).ask(3)
    assert [t.config for t in other] != [config for config, _ in here[:3]]


def _ask_and_tell(search: Search, size: int) -> list[Trial]:
    trials = search.ask(size)
    for trial in trials:
        search.tell(trial, float(trial.id))
    return trials


def test_a_decision_takes_one_thread() -> None:
    """Otherwise its cost and its last digits would depend on the machine's number of cores."""
    import torch
    from threadpoolctl import threadpool_info, threadpool_limits

    class Counting(RandomSearch):
        is_quick = False

        def suggest(self, history: History, n: int) -> list[Suggestion]:
            counts.append(max(pool["num_threads"] for pool in threadpool_info()))
            counts.append(torch.get_num_threads())
            return super().suggest(history, n)

    counts: list[int] = []
    search = Search("simulation", "random")
    search._method = Counting(search.space)
    with threadpool_limits(2):
        search.ask(3)
        assert torch.get_num_threads() == 2
    assert counts == [1, 1]


def test_a_trial_is_told_in_a_line() -> None:
    search = Search("svm", method="random", rungs=[2, 6])
    first, second = search.ask(2)
    search.report(first, 2, 0.25, {"pages": "of numbers"})
    search.tell(first, 0.25)
    search.tell(second, error="oom")
    told = [repr(trial) for trial in search.trials]
    assert told[0] == f"Trial(0: 0.25 at step 2, paused, {first.config})"
    assert told[1] == f"Trial(1: no value, failed: oom, {second.config})"
