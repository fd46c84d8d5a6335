"""One search of a benchmark: the protocol, the design, and the record."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from nasbo.bench.cell import Cell, Protocol, cell_key, initial_design, key_hash, run_cell
from nasbo.bench.lookup import find_problem
from nasbo.errors import NasboError
from nasbo.space import Space, load_space
from nasbo.testing import SPACES
from tests.bench.tiny import noisy_problem, plain_problem, two_branches

NEARBY = "tests.bench.tiny:Nearby"
CELL = Cell("tests.bench.tiny:NOISY", NEARBY, 3, Protocol(trials=6))


def test_record_holds_the_whole_search() -> None:
    found = run_cell(CELL)
    assert json.loads(json.dumps(found)) == found
    assert found["n_design"] == 8
    assert found["sources"] == ["design"] * 8 + ["model"] * 6
    assert [n for n, _, _ in found["rounds"]] == list(range(8, 14))
    assert found["scores"] == [two_branches(config) for config in found["configs"]]
    assert found["values"] != found["scores"]
    assert (found["group"], found["half"], found["optimum"]) == ("noise", "held-out", None)
    assert all(seconds >= 0 for _, _, seconds in found["rounds"])


def test_design_and_its_noise_are_the_same_for_everybody() -> None:
    mine = run_cell(CELL)
    for other in (replace(CELL, method="random"), replace(CELL, method=f"{NEARBY}@2")):
        found = run_cell(other)
        for column in ("configs", "values", "scores"):
            assert found[column][:8] == mine[column][:8]
        assert found["configs"] != mine["configs"]
    assert run_cell(replace(CELL, seed=4))["configs"][:8] != mine["configs"][:8]


def test_one_cell_one_result() -> None:
    first, second = run_cell(CELL), run_cell(CELL)
    for column in ("configs", "values", "scores", "sources", "key"):
        assert first[column] == second[column]


def test_batches_and_own_designs() -> None:
    found = run_cell(replace(CELL, method=f"{NEARBY}@subspaces", protocol=Protocol(6, design=5)))
    assert found["n_design"] == 5
    assert [size for _, size, _ in found["rounds"]] == [4, 2]
    assert found["key"]["batch"] == 4


def test_fallbacks_are_counted_with_their_reason() -> None:
    found = run_cell(replace(CELL, method="tests.bench.tiny:Failing"))
    assert found["sources"][8:] == ["fallback"] * 6
    assert found["fallbacks"] == {"ArithmeticError: no proposal": 6}


def test_a_space_that_is_used_up_ends_the_search() -> None:
    found = run_cell(Cell("tests.bench.tiny:finite_problem", "random", 0, Protocol(trials=10)))
    assert len(found["scores"]) == 5
    assert found["rounds"][-1][1] == 0


def test_a_pool_is_searched_by_its_configs() -> None:
    found = run_cell(Cell("tests.bench.tiny:pool_problem", "random", 0, Protocol(trials=50)))
    assert len({json.dumps(config) for config in found["configs"]}) == len(found["scores"]) == 30


@pytest.mark.parametrize("shape", ["nested", "thousands", "finite"])
def test_designs_are_valid_and_complete(shape: str) -> None:
    space: Space = load_space(SPACES[shape])
    design = initial_design(space, 5)
    assert {suggestion.source for suggestion in design} == {"design"}
    assert len(design) == {"nested": 8, "thousands": 24, "finite": 4}[shape]
    assert [s.config for s in initial_design(space, 5)] == [s.config for s in design]
    for suggestion in design:
        space.canonical(suggestion.config)


def test_keys_differ_by_whatever_decides_a_result() -> None:
    problem = find_problem(CELL.problem)
    changed: list[tuple[Cell, Any]] = [
        (replace(CELL, seed=4), problem),
        (replace(CELL, method="random"), problem),
        (replace(CELL, method=f"{NEARBY}[step=0.2]"), problem),
        (replace(CELL, method=f"{NEARBY}@2"), problem),
        (replace(CELL, protocol=Protocol(trials=7)), problem),
        (replace(CELL, protocol=Protocol(trials=6, design=5)), problem),
        (CELL, replace(problem, version=2)),
        (CELL, replace(problem, space=load_space(SPACES["flat"]))),
    ]
    keys = [key_hash(cell_key(*one)) for one in [(CELL, problem), *changed]]
    assert len(set(keys)) == len(keys)
    again = key_hash(cell_key(replace(CELL, method=f" {NEARBY} "), noisy_problem()))
    assert again == keys[0]


def test_bad_protocols_and_problems_are_refused() -> None:
    with pytest.raises(NasboError, match="trials >= 1 must hold, but got 0"):
        Protocol(trials=0)
    with pytest.raises(NasboError, match="design >= 2"):
        Protocol(design=1)
    with pytest.raises(NasboError, match="or module:function, got 'nope'"):
        find_problem("nope")
    with pytest.raises(NasboError, match=r"no problem 'tests\.bench\.tiny:nope'"):
        find_problem("tests.bench.tiny:nope")
    with pytest.raises(NasboError, match="must make a Problem, got float"):
        find_problem("time:time")
    assert plain_problem().optimum == 0.5
