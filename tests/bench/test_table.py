"""Tables, against numbers that were computed by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import wilcoxon

from nasbo.bench.figures import rank_curves
from nasbo.bench.markdown import grid, number, to_markdown
from nasbo.bench.regret import regret_pairs, yardsticks
from nasbo.bench.results import Results, load_results, make_run
from nasbo.bench.spec import parse_method
from nasbo.bench.statistics import bootstrap, compare, first_below, ranks
from nasbo.bench.table import checkpoints, make_table, scopes
from nasbo.bench.version import method_version
from nasbo.bench.write import write_tables
from nasbo.errors import NasboError
from tests.bench.records import record, write_cells

A, R = "attnbo", "random"


def results_of(tmp_path: Path, *records: dict[str, Any]) -> Results:
    write_cells(tmp_path, records)
    return load_results(tmp_path)


def test_runs_keep_the_best_true_value_and_the_one_a_user_would_take() -> None:
    made = record(
        ("p", A, 0), [5.0, 4.0, None, 3.0, 6.0, 1.0], values=[5.0, 4.5, None, 9.0, 0.5, 2.0],
        subspaces=[0, 1, 0, 2, 0, 3],
    )  # fmt: skip
    run = make_run(made)
    assert run.best.tolist() == [4.0, 4.0, 3.0, 3.0, 1.0]
    assert run.chosen.tolist() == [4.0, 4.0, 4.0, 6.0, 6.0]
    assert run.best_subspace.tolist() == [1, 1, 2, 2, 3]
    assert run.round_ends == (1, 2, 3, 4)


def test_a_search_that_ran_out_of_configs_keeps_its_best() -> None:
    made = record(("p", A, 0), [3.0, 2.0, 1.0])
    made["key"]["trials"] = 4
    assert make_run(made).best.tolist() == [2.0, 1.0, 1.0, 1.0, 1.0]


def test_regret_is_0_at_the_best_and_1_at_the_median_of_random(tmp_path: Path) -> None:
    results = results_of(
        tmp_path,
        record(("p", A, 0), [10.0, 9.0, 2.0]),
        record(("p", A, 1), [10.0, 9.0, 4.0]),
        record(("p", R, 0), [10.0, 9.0, 6.0]),
        record(("p", R, 1), [10.0, 9.0, 8.0]),
    )
    (stick,) = yardsticks(results).values()
    assert (stick.best, stick.unit, stick.is_optimum) == (2.0, 5.0, False)
    table = make_table(results)
    assert table["regret"]["p"][A]["1"]["regret"]["mean"] == pytest.approx(0.2)
    assert table["regret"]["p"][R]["1"]["regret"]["mean"] == pytest.approx(1.0)
    assert table["regret"]["p"][A]["1"]["regret"]["low"] == 0.0
    assert table["regret"]["p"][A]["1"]["regret"]["high"] == pytest.approx(0.4)
    assert table["regret"]["p"][A]["1"]["log10"] is None
    assert table["regret"]["p"][A]["1"]["median"] == 3.0


def test_known_optima_give_log10_regret_leaves_and_times(tmp_path: Path) -> None:
    results = results_of(
        tmp_path,
        record(("p", A, 0), [3.0, 2.0, 1.1, 1.001], optimum=1.0, subspaces=[0, 0, 1, 1]),
        record(("p", A, 1), [3.0, 2.0, 2.0, 1.1], optimum=1.0, subspaces=[0, 0, 0, 0]),
        record(("p", R, 0), [3.0, 2.0, 2.0, 2.0], optimum=1.0),
    )
    table = make_table(results)
    assert table["regret"]["p"][A]["2"]["log10"]["mean"] == pytest.approx((-3 - 1) / 2)
    found = table["optimum"]["p"]
    assert found["at"] == 2
    assert found[A]["share_near"] == 0.5
    assert found[A]["trials_to_near"] is None
    assert found[A]["right_subspace"] == 0.5
    assert found[A]["median_log10"] == pytest.approx(-2.0)
    assert found[R]["share_near"] == 0.0


def test_trials_to_the_optimum_count_a_run_that_never_gets_there(tmp_path: Path) -> None:
    results = results_of(
        tmp_path,
        record(("p", A, 0), [3.0, 2.0, 1.0, 1.0, 1.0], optimum=1.0),
        record(("p", A, 1), [3.0, 2.0, 2.0, 2.0, 1.00001], optimum=1.0),
        record(("p", A, 2), [3.0, 1.0, 1.0, 1.0, 1.0], optimum=1.0),
        record(("p", R, 0), [3.0, 2.0, 2.0, 1.0, 1.0], optimum=1.0),
        *[record(("q", m, 0), [3.0, 2.0, 2.0, 1.5, 1.5], optimum=1.0) for m in (A, R)],
    )
    table = make_table(results)
    found = table["optimum"]["p"]
    assert found[A]["trials_to_optimum"] == 1.0
    assert found[A]["mean_trials_to_optimum"] == pytest.approx((1 + 4 + 0) / 3)
    assert found[A]["share_optimum"] == pytest.approx(2 / 3)
    assert (found[R]["trials_to_optimum"], found[R]["share_optimum"]) == (2.0, 1.0)
    never = table["optimum"]["q"][A]
    assert (never["trials_to_optimum"], never["share_optimum"]) == (4.0, 0.0)
    text = to_markdown(table)
    assert f"| p | {A} | 1 (100%) | 1, 1.7 (67%) |" in text
    assert f"| q | {A} | never (0%) | – |" in text


def test_without_random_the_design_is_the_yardstick(tmp_path: Path) -> None:
    results = results_of(
        tmp_path, record(("p", A, 0), [6.0, 5.0, 1.0]), record(("p", "gp", 0), [6.0, 5.0, 3.0])
    )
    (stick,) = yardsticks(results).values()
    assert (stick.unit, stick.reference) == (4.0, "the design (random was not run)")


def test_ranks_weigh_problems_alike_and_share_ties(tmp_path: Path) -> None:
    results = results_of(
        tmp_path,
        # On p random wins both seeds; on q attnbo wins, gp and random tie.
        *[record(("p", m, s), [9.0, 9.0, v]) for m, v in ((A, 2.0), ("gp", 3.0), (R, 1.0))
          for s in (0, 1)],
        *[record(("q", m, 0), [9.0, 9.0, v], half="held-out", group="h")
          for m, v in ((A, 1.0), ("gp", 3.0), (R, 3.0))],
    )  # fmt: skip
    table = make_table(results)
    overall = table["ranks"]["overall"]["1"]
    assert (overall["n_problems"], overall["n_pairs"]) == (2, 3)
    assert overall["mean"] == {A: 1.5, "gp": (3 + 2.5) / 2, R: (1 + 2.5) / 2}
    assert table["ranks"]["half held-out"]["1"]["mean"] == {A: 1.0, "gp": 2.5, R: 2.5}
    assert table["ranks"]["group g"]["1"]["mean"] == {A: 2.0, "gp": 3.0, R: 1.0}
    tests = table["tests"]["overall"]["1"]
    assert (tests["gp"]["wins"], tests["gp"]["losses"], tests["gp"]["ties"]) == (3, 0, 0)
    assert (tests[R]["wins"], tests[R]["losses"]) == (1, 2)
    assert [name for name, _ in scopes(results)] == [
        "overall", "half tuning", "half held-out", "group g", "group h",
    ]  # fmt: skip


def test_only_seeds_and_problems_that_all_have_met_are_ranked(tmp_path: Path) -> None:
    results = results_of(
        tmp_path,
        *[record(("p", A, seed), [9.0, 9.0, 1.0]) for seed in (0, 1)],
        record(("p", R, 0), [9.0, 9.0, 2.0]),
        record(("q", A, 0), [9.0, 9.0, 1.0]),
        record(("q", R, 0), [9.0, 9.0, 2.0]),
        record(("q", "gp", 0), [9.0, 9.0, 0.5]),
    )
    table = make_table(results)
    overall = table["ranks"]["overall"]["1"]
    assert overall["mean"] == {A: 1.0, R: 2.0}
    assert overall["unranked"] == ["gp"]
    assert overall["n_pairs"] == 2
    assert "Not ranked where problems are missing from their runs: gp." in to_markdown(table)


def test_trials_to_the_best_peers_final_median(tmp_path: Path) -> None:
    results = results_of(
        tmp_path,
        record(("p", A, 0), [9.0, 9.0, 5.0, 2.0, 2.0]),
        record(("p", A, 1), [9.0, 9.0, 2.5, 2.5, 1.0]),
        record(("p", A, 2), [9.0, 9.0, 8.0, 8.0, 8.0]),
        *[record(("p", "gp", s), [9.0, 9.0, 9.0, 9.0, v]) for s, v in enumerate((1.0, 3.0, 4.0))],
        *[record(("p", R, s), [9.0, 9.0, 9.0, 9.0, 7.0]) for s in range(3)],
    )
    reach = make_table(results)["reach"]
    one = reach["problems"]["p"]
    assert (one["peer"], one["target"]) == ("gp", 3.0)
    assert one["trials"] == 2.0
    assert one["share"] == pytest.approx(2 / 3)
    assert reach["median"] == 2.0


def test_what_ties_in_the_ranks_is_reached(tmp_path: Path) -> None:
    results = results_of(
        tmp_path,
        record(("p", A, 0), [9.0, 9.0, 2.0, 1.000001, 1.000001]),
        record(("p", "gp", 0), [9.0, 9.0, 9.0, 9.0, 1.0]),
        record(("p", R, 0), [9.0, 9.0, 9.0, 9.0, 7.0]),
    )
    table = make_table(results)
    one = table["reach"]["problems"]["p"]
    assert (one["trials"], one["exact"], one["share"]) == (2.0, None, 1.0)
    assert "**2**, to the last digit never." in to_markdown(table)


def test_costs_are_per_config_around_counts(tmp_path: Path) -> None:
    made = record(("p", A, 0), [9.0] * 14)
    made["rounds"] = [[9, 2, 4.0], [11, 1, 1.0], [12, 1, 50.0]]
    other = record(("p", R, 0), [9.0] * 14)
    table = make_table(results_of(tmp_path, made, other))
    assert table["cost"]["overall"][A]["10"] == {"median": 1.5, "p95": pytest.approx(1.95)}
    assert set(table["cost"]["overall"][A]) == {"10"}


def test_noise_is_reported_by_what_a_user_would_take(tmp_path: Path) -> None:
    table = make_table(
        results_of(
            tmp_path,
            record(("p", A, 0), [4.0, 3.0, 1.0], values=[4.0, 0.0, 1.0]),
            record(("p", R, 0), [4.0, 3.0, 2.0], values=[4.0, 3.0, 2.0]),
        )
    )
    assert table["chosen"]["p"][A]["mean"] == 2.0
    assert table["chosen"]["p"][R]["mean"] == 1.0


def test_the_newest_version_counts_and_mixtures_are_named(tmp_path: Path) -> None:
    results = results_of(
        tmp_path,
        record(("p", A, 0), [9.0, 9.0, 5.0], version="1", made=1.0),
        record(("p", A, 0), [9.0, 9.0, 2.0], version="2", made=2.0),
        record(("p", A, 1), [9.0, 9.0, 2.0], version="1", made=1.0),
        record(("p", R, 0), [9.0, 9.0, 2.0]),
    )
    assert results.runs["p", A, 0].best[-1] == 2.0
    assert results.notes == (
        "1 cells of other versions of their methods are left out",
        f"cells of several versions are mixed: {A}",
    )


def test_the_version_of_the_present_code_counts_before_newer_ones(tmp_path: Path) -> None:
    present = method_version(parse_method(R))
    results = results_of(
        tmp_path,
        record(("p", R, 0), [9.0, 9.0, 5.0], version=present, made=1.0),
        record(("p", R, 0), [9.0, 9.0, 2.0], version="another", made=2.0),
        record(("p", A, 0), [9.0, 9.0, 2.0], version="1", made=1.0),
        record(("p", A, 0), [9.0, 9.0, 2.0], version="2", made=2.0),
    )
    assert results.runs["p", R, 0].best[-1] == 5.0
    assert results.notes == ("2 cells of other versions of their methods are left out",)
    alone = load_results(tmp_path, methods=[R])
    assert alone.notes == ("1 cells of other versions of their methods are left out",)


def test_saturated_problems_are_no_division_by_zero(tmp_path: Path) -> None:
    results = results_of(tmp_path, *[record(("p", m, 0), [1.0, 1.0, 1.0]) for m in (A, R)])
    table = make_table(results)
    assert table["regret"]["p"][A]["1"]["regret"]["mean"] == 0.0
    assert table["ranks"]["overall"]["1"]["mean"] == {A: 1.5, R: 1.5}
    assert table["tests"]["overall"]["1"][R]["p"] == 1.0


def test_comparison_is_scipys_test_with_a_direction() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.random(20), rng.random(20) + 0.4
    found = compare(first, second)
    gaps = np.round(second, 4) - np.round(first, 4)
    assert found.p == pytest.approx(float(wilcoxon(gaps).pvalue))
    assert found.verdict == "ahead"
    assert compare(second, first).verdict == "behind"
    assert compare(first, first).verdict == "even"
    # Many small losses, few large wins: the direction is that of the ranks, not of the count.
    few = compare(np.array([0.0, 0.0, 0.01]), np.array([5.0, 6.0, 0.0]))
    assert few.lean == pytest.approx((2 + 3 - 1) / 6)


def test_methods_that_found_nothing_are_even_and_behind_the_others() -> None:
    nothing, some = np.full(10, math.inf), np.linspace(0.1, 1.0, 10)
    even = compare(nothing, nothing.copy())
    assert (even.ties, even.p, even.verdict) == (10, 1.0, "even")
    mixed = compare(some, np.where(np.arange(10) < 2, some, math.inf))
    assert (mixed.wins, mixed.ties, mixed.lean) == (8, 2, 1.0)
    assert (mixed.verdict, compare(nothing, some).verdict) == ("ahead", "behind")


def test_tables_of_failed_trials(tmp_path: Path) -> None:
    lost = [None, None, None]
    write_cells(
        tmp_path,
        [
            record(("p", A, 0), [None, None, 3.0]),
            record(("p", "gp", 0), [None, None, 1.0]),
            record(("p", R, 0), lost),
            *[record(("q", m, 0), lost) for m in (A, "gp", R)],
        ],
    )
    table = write_tables(tmp_path)
    assert table["ranks"]["overall"]["1"]["mean"] == {A: 2.0, "gp": 1.5, R: 2.5}
    assert table["regret"]["p"]["gp"]["1"]["regret"]["mean"] == 0.0
    assert table["regret"]["p"][A]["1"]["regret"]["mean"] == 2.0
    assert table["regret"]["q"][A]["1"]["regret"]["mean"] is None
    assert table["tests"]["overall"]["1"]["gp"]["verdict"] == "even"
    assert "1 is nothing, since all trials have failed" in to_markdown(table)


def test_statistics_of_little() -> None:
    assert math.isnan(bootstrap([]).mean)
    assert bootstrap([2.0]) == bootstrap([2.0, 2.0])
    wide = bootstrap([0.0, 1.0] * 20)
    assert 0.3 < wide.low < wide.mean == 0.5 < wide.high < 0.7
    assert ranks(np.array([[0.30001, 0.3, 0.1]])).tolist() == [[2.5, 2.5, 1.0]]
    assert first_below(np.array([3.0, 2.0, 1.0]), 2.0) == 1.0
    assert first_below(np.array([3.0]), 2.0) == math.inf
    assert first_below(np.array([3.0, 1.0, 3.0, 2.0, 1.0]), 2.0) == 3.0
    assert first_below(np.array([1.0, 3.0]), 2.0) == math.inf
    assert checkpoints(80) == [10, 20, 40, 80]
    assert checkpoints(30) == [10, 20, 30]


def test_files_are_written_and_say_what_is_missing(tmp_path: Path) -> None:
    write_cells(
        tmp_path,
        [record((p, m, s), [9.0, 8.0, 2.0 + s]) for p in "pq" for m in (A, R) for s in (0, 1)],
    )
    plan = {
        "parts": [{"problems": ["p", "q"], "methods": [R, A, "gp"], "seeds": 2,
                   "protocol": {"trials": 1, "batch": 1, "design": None}}],
        "command": "nasbo bench --own",
        "left_out": {"smac": "needs the package 'smac'"},
    }  # fmt: skip
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    table = write_tables(tmp_path)
    assert table["methods"] == [R, A]
    assert len(table["missing"]) == 4
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "**Left out: smac** (needs the package 'smac')" in text
    assert "Made by `nasbo bench --own`." in text
    assert "**4 cells are missing:** p gp seed 0" in text
    assert json.loads((tmp_path / "table.json").read_text(encoding="utf-8")) == table
    assert "- random is significantly behind: none." in text
    assert "- Mean rank overall at 1 trials is not the lowest: random 1.50" in text
    names = {path.name for path in tmp_path.glob("*.png")}
    assert {"regret_p.png", "regret_q.png", "rank_overall.png", "cost.png"} <= names
    assert all((tmp_path / name).read_bytes()[:4] == b"\x89PNG" for name in names)
    kept = write_tables(tmp_path, methods=[A], problems=["q"])
    assert (kept["methods"], list(kept["problems"])) == ([A], ["q"])


def write_plan(out: Path, methods: list[str], batch: int = 1) -> None:
    """A plan of one trial and one seed on problem p."""
    protocol = {"trials": 1, "batch": batch, "design": None}
    part = {"problems": ["p"], "methods": methods, "seeds": 1, "protocol": protocol}
    plan = {"parts": [part], "left_out": {}}
    (out / "plan.json").write_text(json.dumps(plan), encoding="utf-8")


def test_cells_of_another_batch_are_not_those_of_the_plan(tmp_path: Path) -> None:
    own, per_subspace = f"{A}@3", f"{A}@subspaces"
    made = [record(("p", label, 0), [9.0, 8.0, 5.0]) for label in (A, A, own, per_subspace)]
    for one, batch in zip(made, (1, 4, 3, 2), strict=True):
        one["key"]["batch"] = batch
    made[1]["scores"][-1] = 1.0
    write_cells(tmp_path, made)
    methods = [A, own, per_subspace]
    for batch, best in ((1, 5.0), (4, 1.0)):
        write_plan(tmp_path, methods, batch)
        results = load_results(tmp_path)
        assert (results.methods, results.missing) == (tuple(methods), ())
        assert results.runs["p", A, 0].best[-1] == best
    write_plan(tmp_path, methods, batch=2)
    assert load_results(tmp_path).missing == (f"p {A} seed 0",)


def test_regrets_do_not_depend_on_the_methods_that_are_shown(tmp_path: Path) -> None:
    values = ((A, 2.0), ("gp", 3.0), (R, 6.0), ("tpe", 1.0))
    write_cells(tmp_path, [record(("p", m, 0), [9.0, 8.0, v]) for m, v in values])
    whole = make_table(load_results(tmp_path))
    table = make_table(load_results(tmp_path, [A, "gp"]))
    assert table["methods"] == [A, "gp"]
    assert table["problems"]["p"]["reference"] == "random at the end"
    assert table["regret"]["p"] == {m: whole["regret"]["p"][m] for m in (A, "gp")}
    write_plan(tmp_path, [A, "gp"])  # cells outside of the plan are not used
    assert make_table(load_results(tmp_path))["problems"]["p"]["best"] == 2.0
    for choice in ({"methods": ["gpp"]}, {"problems": ["r"]}):
        with pytest.raises(NasboError, match=rf"must be one of .* in {tmp_path}, got '(gpp|r)'"):
            load_results(tmp_path, **choice)


def test_the_plot_weighs_problems_as_the_table_does(tmp_path: Path) -> None:
    results = results_of(
        tmp_path,
        *[record(("p", m, s), [9.0, 9.0, v]) for m, v in ((A, 2.0), (R, 1.0)) for s in range(3)],
        *[record(("q", m, 0), [9.0, 9.0, v]) for m, v in ((A, 1.0), (R, 2.0))],
    )
    pairs = regret_pairs(results, yardsticks(results), ["p", "q"], 1)
    assert rank_curves(pairs).mean(0)[:, -1].tolist() == [1.5, 1.5]
    assert make_table(results)["ranks"]["overall"]["1"]["mean"] == {A: 1.5, R: 1.5}
    alone = regret_pairs(results, yardsticks(results), ["p"], 1)
    assert rank_curves(alone).shape == (3, 2, 2)


def test_numbers_and_grids_in_words() -> None:
    shown = [number(value) for value in (None, 0.12345, 1234.5, -3.14159, 0.0, 2.5e-5)]
    assert shown == ["–", "0.12", "1234", "-3.14", "0.00", "2.5e-05"]
    assert grid(["a", "b|c"], [["1", "2"]]) == "| a | b\\|c |\n| --- | --- |\n| 1 | 2 |"
