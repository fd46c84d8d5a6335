"""Failing regions of a space: detected, excluded, probed, and readmitted when they work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nasbo.feasibility import FIRST_PROBE, failing_regions
from nasbo.search import Search
from nasbo.space import Config
from nasbo.testing.spaces import BRANCHES, branch_value

N_CHOSEN = 48


def evaluate(search: Search, n: int, cause: str, is_broken: Any) -> list[Config]:
    trials = search.ask(n)
    for trial in trials:
        if is_broken(trial.config):
            search.tell(trial, error=cause)
        else:
            search.tell(trial, branch_value(trial.config))
    return [trial.config for trial in trials]


def is_b(config: Config) -> bool:
    return bool(config["kind"] == "b")


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("cause", ["crashed", "oom", "diverged"])
def test_a_branch_that_always_fails_is_hardly_chosen(cause: str, n: int) -> None:
    search = Search(BRANCHES, seed=1)
    evaluate(search, 6, cause, is_b)
    chosen = [c for _ in range(N_CHOSEN // n) for c in evaluate(search, n, cause, is_b)]
    assert 1 <= sum(map(is_b, chosen)) <= 8
    assert search.best.config["kind"] == "a"


def test_failures_at_random_blame_nothing() -> None:
    rng = np.random.default_rng(0)
    search = Search(BRANCHES, "random", seed=3)
    for _ in range(60):
        evaluate(search, 1, "crashed", lambda config: rng.random() < 0.1)
        assert not failing_regions(search.history)
    assert search.history.state_counts()["failed"] >= 3


def test_a_lost_node_is_never_blamed() -> None:
    search = Search(BRANCHES, "random", seed=3)
    for _ in range(40):
        evaluate(search, 1, "lost", is_b)
    assert not failing_regions(search.history)


def test_nothing_is_blamed_where_nothing_finishes() -> None:
    search = Search(BRANCHES, "random", seed=3)
    for _ in range(20):
        evaluate(search, 1, "crashed", lambda config: True)
    assert not failing_regions(search.history)


@pytest.mark.parametrize(
    ("is_broken", "text"),
    [
        (is_b, "kind=b"),
        (lambda c: c["rate"] > 0.2, "rate >= 0.2"),
        (lambda c: c["rate"] < 0.005, "rate <= 0.00"),
        (lambda c: c.get("z", 0) >= 2, "z >= 2"),
    ],
)
def test_the_region_is_named(is_broken: Any, text: str) -> None:
    search = Search(BRANCHES, "random", seed=5)
    for _ in range(60):
        evaluate(search, 1, "oom", is_broken)
    (region,) = failing_regions(search.history)
    assert text in str(region)
    assert f"all {len(region.failed)} configs failed (oom {len(region.failed)})" in str(region)


def test_two_failing_branches_are_both_found() -> None:
    search = Search(BRANCHES, "random", seed=5)
    for _ in range(40):
        evaluate(search, 1, "crashed", lambda config: config["kind"] != "a")
    told = " ".join(map(str, failing_regions(search.history)))
    assert "kind=b" in told
    assert "kind=c" in told


def test_probes_come_at_doubling_intervals_and_give_back_a_branch_that_works_again() -> None:
    search = Search(BRANCHES, "random", seed=6)
    while not failing_regions(search.history):
        evaluate(search, 1, "crashed", is_b)
    rounds = len(search.history.rounds)
    for _ in range(40):
        evaluate(search, 1, "crashed", is_b)
    probes = [trial for trial in search.trials if trial.source == "probe"]
    waits = np.diff([rounds - 1, *(trial.round for trial in probes)])
    assert waits.tolist() == [FIRST_PROBE, 2 * FIRST_PROBE, 4 * FIRST_PROBE]
    assert "probe of subspace kind=b: all" in probes[0].info["reason"]
    while search.history.trials[-1].source != "probe":
        evaluate(search, 1, "crashed", lambda config: False)
    told = [str(region) for region in failing_regions(search.history)]
    assert "kind=b" not in " ".join(told), "it has worked once: less than the branch is left"


def test_a_space_of_which_only_a_failing_region_is_left_is_searched_to_its_end() -> None:
    space = {
        "kind": {"type": "choice", "range": ["a", "b"]},
        "n": {"type": "int", "range": [0, 8]},
    }
    search = Search(space, "random", seed=0)
    for _ in range(16):
        (trial,) = search.ask(1)
        if is_b(trial.config):
            search.tell(trial, error="crashed")
        else:
            search.tell(trial, float(trial.config["n"]))
    assert not search.ask(1), "all 16 configs have been tried"


def test_the_journal_says_what_is_set_aside(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    with Search(BRANCHES, "random", seed=7, journal=journal) as search:
        for _ in range(40):
            evaluate(search, 1, "crashed", is_b)
        configs = [trial.config for trial in search.trials]
    rounds = [json.loads(line) for line in journal.read_text().splitlines()]
    told = [event["set_aside"] for event in rounds if event.get("set_aside")]
    assert told[-1][0].startswith("subspace kind=b: all")
    with Search(BRANCHES, "random", seed=7, journal=journal) as again:
        assert [trial.config for trial in again.trials] == configs
        assert failing_regions(again.history)
