"""Properties of every problem of the registry."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from nasbo.bench.problem import Problem
from nasbo.bench.problems import PROBLEMS, make_problem
from nasbo.bench.problems.listing import problem_rows
from nasbo.bench.problems.openml import SETS
from nasbo.errors import NasboError

# Problems with learning curves need a table of their own or keep whole curves: see test_curves.
# A pool has values only where its table has: see test_accel_nasbench.
# Those of hardware are scored by fronts, and most need a table: see test_hardware.
APART = ("curves", "hardware")
WHOLE = {
    name: entry
    for name, entry in PROBLEMS.items()
    if not entry.group.startswith(APART) and entry.make().snap is None
}
CHEAP = sorted(name for name, entry in WHOLE.items() if entry.cost == "ms")
STORED = sorted(name for name, entry in WHOLE.items() if entry.cost == "< 1 s")


def scores(problem: Problem, n: int, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    configs = [problem.space.sample(rng) for _ in range(n)]
    return [problem.score(config, problem.evaluate(config, rng)) for config in configs]


def test_the_promised_problems_are_there() -> None:
    promised = {f"{kind}_{data}" for kind in ("cash", "svm", "xgboost", "mlp", "pipeline")
                for data in SETS}  # fmt: skip
    promised |= {f"jenatton_{size}{kind}" for size in ("small", "large")
                 for kind in ("", "_shifted", "_unshared")}  # fmt: skip
    promised |= {"share", "noshare", "blocks", "tree_many", "func2c", "func3c", "ackley53",
                 "hartmann6", "nasbench201_cifar10", "nasbench_graph_cora"}  # fmt: skip
    assert promised <= PROBLEMS.keys()


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        NasboError, match=r"one of accel_nasbench, ackley53, .*share.*, got 'nonsense'"
    ):
        make_problem("nonsense")


def test_every_group_is_in_both_halves() -> None:
    halves: dict[str, set[str]] = {}
    for entry in PROBLEMS.values():
        halves.setdefault(entry.group, set()).add(entry.half)
    assert all(found == {"tuning", "held-out"} for found in halves.values()), halves


def test_no_data_set_is_in_both_halves() -> None:
    for data in SETS:
        of_set = [entry for name, entry in PROBLEMS.items() if name.endswith(f"_{data}")]
        assert len({entry.half for entry in of_set}) == 1


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_a_problem_bears_its_name_and_makes_the_same_space_twice(name: str) -> None:
    problem = PROBLEMS[name].make()
    assert problem.name == name
    assert problem.space.fingerprint() == PROBLEMS[name].make().space.fingerprint()


@pytest.mark.parametrize("name", CHEAP)
def test_values_follow_from_the_generator_and_none_is_below_the_optimum(name: str) -> None:
    problem = make_problem(name)
    n = 30 if name == "pest_control" else 300
    found = scores(problem, n, seed=1)
    assert found == scores(make_problem(name), n, seed=1)
    assert all(math.isfinite(score) for score in found)
    assert len(set(found)) > n / 10
    if problem.optimum is not None:
        assert min(found) >= problem.optimum


@pytest.mark.parametrize("name", CHEAP)
def test_what_is_noisy_has_a_truth_without_noise(name: str) -> None:
    problem = make_problem(name)
    config = problem.space.default_config()
    values = {problem.evaluate(config, np.random.default_rng(seed)) for seed in range(20)}
    if problem.truth is None:
        assert len(values) == 1
    else:
        assert problem.truth(config) == problem.truth(config)
        assert min(values) <= problem.truth(config) <= max(values)
        rng = np.random.default_rng(0)
        configs = [problem.space.sample(rng) for _ in range(10)]
        assert any(problem.evaluate(c, rng) != problem.evaluate(c, rng) for c in configs)


@pytest.mark.parametrize("name", [name for name in STORED if name.endswith("_diabetes")])
def test_stored_problems_answer_again_from_disk(name: str, data: Path, tables: Path) -> None:
    problem, rng = make_problem(name), np.random.default_rng(3)
    config = problem.space.sample(rng)
    value = problem.evaluate(config, rng)
    assert 0 < value < 7
    assert make_problem(name).evaluate(config, rng) == value
    store = PROBLEMS[name].store
    assert store is not None
    assert [result.value for result in store().results()] == [value]
    assert store().path.parent == tables


def test_rows_of_the_list_need_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NASBO_DATA", str(tmp_path))
    rows = {row["problem"]: row for row in problem_rows()}
    assert rows.keys() == PROBLEMS.keys()
    assert (rows["tree_many"]["subspaces"], rows["tree_many"]["parameters"]) == (21_760, 47)
    assert (rows["pipeline_steel"]["subspaces"], rows["cash_wdbc"]["subspaces"]) == (30, 6)
    assert rows["ackley53"]["parameters"] == 53
    assert rows["blocks"]["noise"]
    assert not rows["share"]["noise"]
    assert list(tmp_path.iterdir()) == []
