"""Searches by cost: budgets, the clock, ASHA's rule, returned configs, and the tables."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from nasbo.bench.curves.cell import (
    CurveCell,
    CurveProtocol,
    check_curve_method,
    curve_cell_key,
    run_curve_cell,
)
from nasbo.bench.curves.clock import ClockedSearch
from nasbo.bench.curves.ledger import Ledger
from nasbo.bench.curves.results import load_curve_results
from nasbo.bench.curves.stopping import Screen, asha
from nasbo.bench.curves.write import write_curve_tables
from nasbo.bench.lookup import find_problem
from nasbo.bench.plan import Part, make_plan
from nasbo.bench.published import adopt_cells, publish_cells
from nasbo.bench.run import Settings, run_plan
from nasbo.bench.spec import parse_method, parse_methods
from nasbo.cli import cli
from nasbo.errors import NasboError
from nasbo.history import Rungs
from nasbo.search import Driver, Policies, Schedule, Search, Verdict
from tests.bench.tiny import N_STEPS, pool_problem, two_branches

CURVED, POOL = "tests.bench.tiny:curved_problem", "tests.bench.tiny:pool_problem"
LABELS = ("random", "random+rungs", "random+asha", "random+screen", "random+rungs+rounds",
          "optuna+sh", "smac+mf")  # fmt: skip
SMALL = CurveProtocol(budget=6)


@pytest.mark.parametrize("problem", [CURVED, POOL])
@pytest.mark.parametrize("label", LABELS)
def test_budgets_are_kept_and_one_cell_has_one_result(label: str, problem: str) -> None:
    cell = CurveCell(problem, label, 1, SMALL)
    first, second = run_curve_cell(cell), run_curve_cell(cell)
    assert json.loads(json.dumps(first)) == first
    for changing in ("seconds", "made", "rounds"):
        first.pop(changing), second.pop(changing)
    assert first == second
    assert (2 if "screen" in label and problem == POOL else 4.5) < first["spent"] <= 6
    assert sum(first["steps"]) / N_STEPS == pytest.approx(first["spent"])
    assert max(first["steps"]) == N_STEPS
    assert first["costs"][-1] == 6
    assert len(first["returned"]) == len(first["seen"]) == len(first["clock"]) == 24
    keys = {json.dumps(config, sort_keys=True) for config in first["configs"]}
    if label != "optuna+sh" or problem == POOL:  # Optuna's sampler may repeat a config
        assert len(keys) == len(first["configs"])


def test_what_is_returned_was_trained_furthest_and_true_values_are_of_the_end() -> None:
    found = run_curve_cell(CurveCell(CURVED, "random+rungs", 0, SMALL))
    full = [two_branches(c) for c, s in zip(found["configs"], found["steps"], strict=True)
            if s == N_STEPS]  # fmt: skip
    assert found["returned"][-1] == pytest.approx(min(full))
    assert found["seen"][-1] in [two_branches(config) for config in found["configs"]]


def test_all_methods_begin_with_the_same_design() -> None:
    designs = [run_curve_cell(CurveCell(POOL, label, 2, SMALL))["configs"][:2] for label in LABELS]
    assert designs == [designs[0]] * len(LABELS)


def test_many_workers_spend_the_same_in_less_time() -> None:
    one, four = (
        run_curve_cell(CurveCell(CURVED, "random", 0, CurveProtocol(8, workers)))
        for workers in (1, 4)
    )
    assert one["spent"] == four["spent"] == 8
    assert (one["clock"][-1], four["clock"][-1]) == (8, 2)
    assert one["returned"][-1] == four["returned"][-1]


def test_a_pool_that_is_used_up_ends_the_search() -> None:
    found = run_curve_cell(CurveCell(POOL, "random", 0, CurveProtocol(40)))
    assert len(found["configs"]) == 30
    assert found["spent"] == 30
    assert found["returned"][-1] == pytest.approx(found["finals"][0])


def test_a_screen_trains_the_best_of_the_first_steps() -> None:
    found = run_curve_cell(CurveCell(CURVED, "random+screen", 0, SMALL))
    scores = [two_branches(config) for config in found["configs"]]
    full = [s for s, n in zip(scores, found["steps"], strict=True) if n == N_STEPS]
    assert sorted(full) == sorted(scores)[: len(full)]
    assert (found["steps"].count(1), len(full)) == (54 - 3, 3)


def test_a_screen_begins_what_its_budget_pays() -> None:
    one = Screen.of_budget(2, 51, 20 * 51)
    assert (one.n_configs, one.n_finalists) == (255, 10)
    found = run_curve_cell(CurveCell(CURVED, "random+screen", 0, CurveProtocol(6, 16)))
    assert found["steps"].count(N_STEPS) == 3, "none is left unfinished"


def test_asha_on_an_example_by_hand() -> None:
    """One in three is promoted: a score at or above the quantile 2/3 of the earlier ones."""
    search = Search("svm", method="random")
    rule = asha(search.history, Rungs((2, 6, 18)))
    driver = Driver(search, Schedule("async"), policies=Policies(stopping=rule))
    verdicts = []
    for value in (5.0, 6.0, 5.0, 4.9, 5.5, 4.0):
        run = driver.next(100)
        assert driver.on_report(run.number, 1, 99.0, {}) is Verdict.GO_ON  # type: ignore[union-attr]
        verdicts.append(driver.on_report(run.number, 2, value, {}))  # type: ignore[union-attr]
    go, stop = Verdict.GO_ON, Verdict.STOP
    # Cutoffs: none; 5; of (5, 6) 5.33; of (5, 5, 6) 5; of (4.9, 5, 5, 6) 5; of five 5.
    assert verdicts == [go, stop, go, go, stop, go]
    assert driver.on_report(0, 6, 3.0, {}) is go, "the first of the second rung"
    assert driver.on_report(2, 6, 3.1, {}) is stop


def test_asha_decides_as_ray_does() -> None:
    async_hyperband = pytest.importorskip("ray.tune.schedulers.async_hyperband")
    from types import SimpleNamespace

    import numpy as np

    bracket = async_hyperband._Bracket(2, 18, 3, 0)
    search = Search("svm", method="random")
    rule = asha(search.history, Rungs((2, 6)))
    driver = Driver(search, Schedule("async"), policies=Policies(stopping=rule))
    rng = np.random.default_rng(0)
    for _ in range(30):
        run = driver.next(1)
        trial = SimpleNamespace(trial_id=str(run.number))  # type: ignore[union-attr]
        for step in range(1, 6):
            value = float(rng.random())
            ours = driver.on_report(run.number, step, value, {})  # type: ignore[union-attr]
            theirs = bracket.on_result(trial, step, -value)
            assert (ours is Verdict.STOP) == (theirs == "STOP")
            if ours is Verdict.STOP:
                break
        driver.on_end(run.number, value, error="stopped", step=step)  # type: ignore[union-attr]


def test_the_ledger_returns_the_best_of_the_furthest() -> None:
    ledger = Ledger(pool_problem(), 2, 0)
    config = find_problem(POOL).snap({"a": 0.1, "b": 0.1}, ())  # type: ignore[misc]
    assert config is not None
    for step in range(1, 4):
        ledger.train(0, config, step, step)
    assert ledger.returned is None
    ledger.end(0, 3, 9.0, 3)
    ledger.end(1, 2, 1.0, 3)
    assert ledger.returned == 0, "1 was trained less far"
    ledger.end(1, 3, 8.0, 4)
    assert ledger.returned == 1
    ledger.end(2, 3, float("nan"), 5)
    assert ledger.returned == 1
    assert not ledger.is_spent
    assert ledger.n_spent == 3


def test_keys_differ_by_whatever_decides_a_result() -> None:
    problem = find_problem(POOL)
    cell = CurveCell(POOL, "random+rungs", 0, SMALL)
    changed = [
        cell,
        replace(cell, seed=1),
        replace(cell, method="random"),
        replace(cell, method="random+rungs+rounds"),
        replace(cell, protocol=CurveProtocol(6, 2)),
        replace(cell, protocol=CurveProtocol(7)),
    ]
    keys = [json.dumps(curve_cell_key(one, problem)) for one in changed]
    keys.append(json.dumps(curve_cell_key(cell, replace(problem, version=2))))
    assert len(set(keys)) == len(keys)


def test_labels_have_rules_behind_them() -> None:
    spec = parse_method("attnbo[attention=off]+rungs+rounds")
    assert (spec.name, spec.rules) == ("attnbo", ("rungs", "rounds"))
    assert parse_method(spec.label) == spec
    assert [one.label for one in parse_methods("random,tpe+asha")] == ["random", "tpe+asha"]


@pytest.mark.parametrize(
    ("label", "workers", "told"),
    [
        ("random+nope", 1, "a rule must be one of rungs, asha, screen, rounds .*got 'nope'"),
        ("random+asha+rungs", 1, "has one of rungs, asha, screen at most"),
        ("random@2+asha", 1, "must have no '@'"),
        ("optuna+sh", 16, "optuna.sh has one worker, got 16"),
    ],
)
def test_methods_that_cannot_be_run_by_cost_are_refused(
    label: str, workers: int, told: str
) -> None:
    with pytest.raises(NasboError, match=told):
        check_curve_method(parse_method(label), CurveProtocol(5, workers))


def test_a_missing_package_is_named_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dehb", None)
    with pytest.raises(NasboError, match=r"'dehb\+hb' needs the package 'DEHB': pip install"):
        make_plan([Part((CURVED,), ("random", "dehb+hb"), 1, SMALL)])
    plan = make_plan([Part((CURVED,), ("random", "dehb+hb"), 1, SMALL)], skip_missing=True)
    assert [cell.method for cell in plan.cells] == ["random"]
    assert list(plan.left_out) == ["dehb+hb"]


def test_plans_refuse_what_does_not_fit() -> None:
    with pytest.raises(NasboError, match="plain has no learning curves"):
        make_plan([Part(("tests.bench.tiny:plain_problem",), ("random",), 1, SMALL)])
    with pytest.raises(NasboError, match=r"only trials of the suite 'curves'.*'random.rungs'"):
        make_plan([Part((CURVED,), ("random+rungs",), 1)])
    with pytest.raises(NasboError, match="workers >= 1 must hold, but got 0"):
        CurveProtocol(workers=0)


def test_rounds_are_decided_as_a_whole() -> None:
    search = ClockedSearch(pool_problem(), parse_method("random+rungs+rounds"), 4, 6, 0)
    sizes = [size for _, size, _ in search.run()["rounds"]]
    assert max(sizes) == 4
    assert search.driver.schedule.kind == "round"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small benchmark by cost that was run."""
    out = tmp_path_factory.mktemp("by-cost")
    parts = [
        Part((CURVED, POOL), ("random", "random+rungs"), 2, SMALL),
        Part((POOL,), ("random",), 1, CurveProtocol(6, 3)),
    ]
    state = run_plan(make_plan(parts), Settings(out, jobs=1))
    assert (state.n_run, state.crashes) == (9, {})
    assert run_plan(make_plan(parts), Settings(out, jobs=1)).n_cached == 9
    return out


def test_tables_have_regrets_ranks_and_tests(folder: Path) -> None:
    one, three = write_curve_tables(folder)
    assert (one["protocol"], one["marks"]) == ("6 trainings' worth on 1 worker", [4, 6])
    assert three["protocol"] == "6 trainings' worth on 3 workers"
    assert one["missing"] == []
    overall = one["scopes"]["overall"]
    assert (overall["n_pairs"], overall["n_problems"]) == (4, 2)
    at = overall["at"]["6"]
    assert at["random"]["test"] is None
    assert at["random+rungs"]["test"]["wins"] <= 4
    assert sum(at[m]["rank"]["mean"] for m in one["methods"]) == pytest.approx(3)
    assert all(0 <= at[m]["regret"]["mean"] < 2 for m in one["methods"])
    assert overall["share"] == {}, "full-length attnbo was not run"
    text = (folder / "table.md").read_text()
    assert "## 6 trainings' worth on 1 worker" in text
    assert "| random+rungs |" in text


def test_tables_of_some_methods_and_problems(folder: Path) -> None:
    (found, _) = load_curve_results(folder, ["random"], [POOL])
    assert found.results.methods == ("random",)
    assert list(found.results.problems) == [POOL]
    with pytest.raises(NasboError, match="no finished cell"):
        load_curve_results(folder, ["attnbo"])


def test_cells_by_cost_are_published_and_adopted(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "published" / "cells.jsonl.xz"
    assert publish_cells(folder, file) == 9
    assert adopt_cells(tmp_path / "new", file.parent) == 9
    names = {path.name for path in (folder / "cells").iterdir()}
    assert {path.name for path in (tmp_path / "new" / "cells").iterdir()} == names


def test_the_command_line_shows_regrets_by_cost(folder: Path) -> None:
    shown = CliRunner().invoke(cli, ["bench", "table", str(folder)])
    assert shown.exit_code == 0, shown.output
    assert "Mean regret, 6 trainings' worth on 3 workers:" in shown.stdout
    assert "at 6" in shown.stdout
    numbers = CliRunner().invoke(cli, ["bench", "table", str(folder), "--json"])
    assert len(json.loads(numbers.stdout)) == 2
