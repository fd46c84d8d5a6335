"""Returned configs: chosen after each number of trials, scored by their true values."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nasbo.bench.cell import Cell, Protocol, cell_key, run_cell
from nasbo.bench.markdown import to_markdown
from nasbo.bench.problem import Problem
from nasbo.bench.regret import regret_pairs, yardsticks
from nasbo.bench.results import load_results, make_run
from nasbo.bench.returned import RULE
from nasbo.bench.table import make_table
from nasbo.history import Trial
from nasbo.search import Search
from nasbo.space import load_space
from nasbo.testing import SPACES
from tests.bench.records import record, write_cells
from tests.bench.tiny import noisy_problem, two_branches

A, R = "attnbo", "random"
TRUTHS: Counter[str] = Counter()


def returning_problem() -> Problem:
    """The noisy problem, scored by returned configs."""
    return replace(noisy_problem(), name="returning", is_returned=True)


def costly_problem() -> Problem:
    """The same, with an expensive truth whose calls are counted."""

    def truth(config: dict[str, Any]) -> float:
        TRUTHS[json.dumps(config)] += 1
        return two_branches(config)

    return replace(returning_problem(), name="costly", truth=truth, is_truth_costly=True)


def failing_problem() -> Problem:
    """Evaluates only one of its branches."""

    def evaluate(config: dict[str, Any], rng: np.random.Generator) -> float:
        return float("nan") if config["top"] == "left" else two_branches(config)

    return replace(returning_problem(), name="failing", evaluate=evaluate)


def lost_problem() -> Problem:
    """Evaluates nothing, in a space of five configs."""
    space = load_space(SPACES["finite"])
    return Problem(
        "lost", space, lambda c, rng: float("nan"), truth=lambda c: 1.0, is_returned=True
    )


def cell(problem: str, trials: int = 12) -> Cell:
    return Cell(f"tests.bench.test_returned:{problem}", R, 3, Protocol(trials=trials))


def test_the_truth_of_the_best_is_noted_after_each_trial() -> None:
    found = run_cell(cell("returning_problem"))
    assert json.loads(json.dumps(found)) == found
    returned, values, scores = found["returned"], found["values"], found["scores"]
    assert len(returned["trials"]) == 13
    for at, trial in enumerate(returned["trials"]):
        end = found["n_design"] + at
        assert trial == int(np.argmin(values[:end]))
        assert returned["of_returned"][at] == returned["of_observed"][at] == scores[trial]
        assert returned["of_tried"][at] == min(scores[:end])
    assert returned["of_returned"] != returned["of_tried"]


def test_the_search_is_asked_while_it_stands_at_that_many_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def newest(search: Search) -> Trial:
        return search.trials[-1]

    plain = run_cell(cell("returning_problem"))
    monkeypatch.setattr(Search, "best", property(newest))
    found = run_cell(cell("returning_problem"))
    assert found["returned"]["trials"] == list(range(7, 20))
    assert found["returned"]["of_returned"] == found["scores"][7:]
    assert found["returned"]["of_observed"] == plain["returned"]["of_observed"]
    run = make_run(found)
    assert run.best.tolist() == found["scores"][7:]
    assert run.best_subspace.tolist() == found["subspaces"][7:]


def test_a_costly_truth_is_computed_once_and_for_what_counts_only() -> None:
    TRUTHS.clear()
    found = run_cell(cell("costly_problem"))
    assert found["scores"] == [None] * 20
    assert found["returned"]["of_tried"] is None
    wanted = {json.dumps(found["configs"][trial]) for trial in found["returned"]["trials"]}
    assert set(TRUTHS) == wanted
    assert set(TRUTHS.values()) == {1}
    assert len(wanted) < 20
    plain = run_cell(cell("returning_problem"))
    assert found["returned"]["of_returned"] == plain["returned"]["of_returned"]


def seldom_problem() -> Problem:
    """The expensive problem, whose truth is computed at the beginning and after 5 and 9 trials."""
    return replace(costly_problem(), name="seldom", truth_after=(5, 9))


def test_a_very_costly_truth_is_looked_at_now_and_then() -> None:
    plain = run_cell(cell("costly_problem"))["returned"]
    TRUTHS.clear()
    found = run_cell(cell("seldom_problem"))
    assert found["returned"]["trials"] == plain["trials"]
    for curve in ("of_returned", "of_observed"):
        every, some = plain[curve], found["returned"][curve]
        assert some == [every[0]] * 5 + [every[5]] * 4 + [every[9]] * 4
    wanted = {json.dumps(found["configs"][plain["trials"][at]]) for at in (0, 5, 9)}
    assert set(TRUTHS) == wanted
    assert len(wanted) < len(set(plain["trials"]))


def test_failures_are_never_returned() -> None:
    found = run_cell(cell("failing_problem"))
    failed = [number for number, value in enumerate(found["values"]) if value is None]
    assert failed
    assert not set(failed) & set(found["returned"]["trials"])
    lost = run_cell(cell("lost_problem"))
    assert len(lost["scores"]) == 5
    assert lost["returned"]["of_returned"] == [None, None]
    run = make_run(lost)
    assert run.best.tolist() == [np.inf] * 13
    assert run.best_subspace.tolist() == [-1] * 13


def test_the_rule_is_part_of_the_key_of_such_cells_only() -> None:
    assert cell_key(cell("returning_problem"), returning_problem())["returned"] == RULE
    assert "returned" not in cell_key(cell("returning_problem"), noisy_problem())


def returned_record(name: tuple[str, str, int], of_returned: list[float], **also: Any) -> Any:
    """A cell of three trials whose own scores would give another result."""
    returned = {
        "trials": [1, 2, 3, 4],
        "of_returned": of_returned,
        "of_observed": [7.0, 6.0, 6.0, 6.0],
        "of_tried": [4.0, 0.5, 0.5, 0.5],
    }
    made = record(name, [9.0, 4.0, 0.5, 0.5, 0.5], values=[9.0, 0.0, 0.0, 0.0, 0.0])
    return made | {"returned": returned | also}


def test_tables_rest_on_what_was_returned(tmp_path: Path) -> None:
    write_cells(
        tmp_path,
        [
            returned_record(("p", A, 0), [5.0, 1.0, 3.0, 2.0]),
            returned_record(("p", R, 0), [5.0, 5.0, 5.0, 3.0]),
            returned_record(("p", "gp", 0), [5.0, 1.5, 1.5, 1.5], of_tried=None),
        ],
    )
    results = load_results(tmp_path)
    (stick,) = yardsticks(results).values()
    assert (stick.best, stick.unit) == (1.0, 2.0)
    table = make_table(results)
    assert table["ranks"]["overall"]["3"]["mean"] == {A: 2.0, "gp": 1.0, R: 3.0}
    assert table["regret"]["p"][A]["3"]["median"] == 2.0
    pairs = regret_pairs(results, {"p": stick}, ["p"], 3)
    assert pairs.regrets[0, 0].tolist() == [2.0, 0.0, 1.0, 0.5]
    found = table["returned"]["p"]
    assert found[A]["returned"]["mean"] == 0.5
    assert found[A]["observed"]["mean"] == 2.5
    assert found[A]["tried"]["mean"] == 0.0
    assert found["gp"]["tried"] is None
    assert table["chosen"] == {}
    text = to_markdown(table)
    assert "| p, returned | 0.50 [0.50, 0.50] | 0.25" in text
    assert "true values of the configs that the methods return" in text


def test_a_target_counts_as_reached_once_a_curve_stays_below_it(tmp_path: Path) -> None:
    write_cells(
        tmp_path,
        [
            returned_record(("p", A, 0), [5.0, 1.0, 3.0, 2.0]),
            returned_record(("p", R, 0), [5.0, 5.0, 5.0, 2.5]),
        ],
    )
    assert make_table(load_results(tmp_path))["reach"]["problems"]["p"]["trials"] == 3.0


def test_one_cell_one_result() -> None:
    first, second = (run_cell(cell("returning_problem", trials=4)) for _ in range(2))
    for column in ("returned", "values", "scores"):
        assert first[column] == second[column]
