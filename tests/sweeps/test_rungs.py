"""Tables of a sweep with rungs: rungs, paused trials, used budget, and rows."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from nasbo.cli import cli
from nasbo.history import History, Rungs
from nasbo.search.rungs import agreement
from nasbo.sweeps.folder import SweepFolder
from nasbo.sweeps.rows import trial_rows
from nasbo.sweeps.rungs import ordinal, promoted_at, rung_rows, seen_at, waiting
from nasbo.sweeps.spending import (
    best_course,
    budget_text,
    course,
    least_budget,
    n_full,
    n_trained,
    n_whole,
    whole_course,
)
from nasbo.sweeps.status import status
from tests.report.sample import make_folder
from tests.rung_search import RUNGS, drive, make, make_rung_folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> SweepFolder:
    """A sweep that has used its budget."""
    return SweepFolder(make_rung_folder(tmp_path_factory.mktemp("runs") / "whole"))


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> SweepFolder:
    """A sweep of which no trial was trained in full yet."""
    return SweepFolder(make_rung_folder(tmp_path_factory.mktemp("runs") / "early", n=10))


def test_a_row_for_each_rung(whole: SweepFolder) -> None:
    rows = rung_rows(whole.history)
    assert [row.step for row in rows] == [2, 6, 18]
    for low, high in pairwise(rows):
        assert low.n_seen == low.n_promoted + low.n_paused + low.n_failed
        assert low.n_promoted == high.n_seen
        assert (low.agreement, low.n_common) == pytest.approx(
            agreement(whole.history, low.step, high.step)
        )
    assert whole.history.best is not None
    assert rows[-1].best == whole.history.best.value
    assert rows[-1].agreement is None
    assert sum(row.n_failed for row in rows) == whole.history.state_counts()["failed"] > 0
    assert not any(row.is_dropped for row in rows)


def test_a_dropped_rung_is_told() -> None:
    def lying(history: History, number: int, step: int) -> float:
        return float(number % 11) if step <= 2 else -float(number % 11)

    one = make(40)
    drive(one, curve=lying)
    rows = rung_rows(one.search.history)
    assert [row.is_dropped for row in rows] == [True, False, False]
    assert rows[0].agreement is not None
    assert rows[0].agreement < -0.9


def test_values_of_one_rung_are_of_one_step(whole: SweepFolder) -> None:
    history = whole.history
    for step in (2, 6):
        for one in seen_at(history, step):
            if one.trial.cause != "diverged":
                assert history.score(one.score) == one.trial.value_at(step)
    assert [one.trial for one in seen_at(history, 18) if one.score > -1e9] == history.ranked()


def test_why_trials_wait(whole: SweepFolder) -> None:
    found = waiting(whole.history)
    assert len(found) == whole.history.state_counts()["paused"]
    assert [one.step for one in found] == sorted((one.step for one in found), reverse=True)
    for one in found:
        trial = whole.history.trial(one.trial)
        assert (one.value, promoted_at(trial)) == (trial.last_value, [2] if one.step == 6 else [])
    last = found[-1]
    told = f"{ordinal(last.rank)} of {last.n_seen} at step 2; {last.n_seen // 3} go on"
    assert last.reason == told


def test_a_trial_without_checkpoint_says_so(tmp_path: Path) -> None:
    one = make(100)
    drive(one, 4)
    one.search.history.retired.add(0)
    told = {item.trial: item.reason for item in waiting(one.search.history)}
    assert told[0].endswith("its checkpoint was removed")
    assert not told[1].endswith("its checkpoint was removed")


def test_places_in_words() -> None:
    told = [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)]
    assert told == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th",
    ]  # fmt: skip


def test_steps_are_those_of_the_curves(whole: SweepFolder) -> None:
    history = whole.history
    assert n_trained(history.runs) == sum(trial.step - (trial.cause == "diverged")
                                          for trial in history.trials)  # fmt: skip
    n_failed = history.state_counts()["failed"]
    full = 18 * (history.n_suggested - n_failed)
    assert n_whole(history) == full + n_failed, "they fail at their second step"
    told = f"{history.spent:.1f} of 8 trainings' worth; {history.n_suggested} configs, "
    assert budget_text(history, 8) == told + f"{n_full(history)} in full"
    assert least_budget(history) == 8


def test_steps_that_are_trained_again_count() -> None:
    one = make(8, rungs=Rungs((2, 6, 18), resumes=False))
    stretches = drive(one)
    assert n_trained(one.search.history.runs) == sum(to for *_, to in stretches)


def test_the_course_goes_by_steps(whole: SweepFolder, tmp_path: Path) -> None:
    history = whole.history
    found = course(history)
    assert [trial for _, trial in found] == sorted(history.ranked(), key=lambda t: t.ended_at or 0)
    assert [n for n, _ in found] == sorted(n for n, _ in found)
    assert history.best is not None
    place, best = best_course(history)[-1]
    assert (place, best) == (n_trained(history.runs) / 18, history.best.value)
    assert len(whole_course(history)) == 8
    assert whole_course(history)[-1] == best
    plain = SweepFolder(make_folder(tmp_path / "plain")).history
    assert best_course(plain) == [*enumerate(plain.best_so_far(), start=1)]
    assert whole_course(plain) == plain.best_so_far()


def test_rows_have_the_last_value_and_the_rung(whole: SweepFolder, tmp_path: Path) -> None:
    by_number = {trial.id: trial for trial in whole.history.trials}
    for row in trial_rows(whole.history):
        trial = by_number[row["trial"]]
        assert (row["value"], row["last_value"]) == (trial.value, trial.last_value)
        assert row["step"] == trial.step
        if row["state"] == "paused":
            assert (row["value"], row["rung"]) == (None, row["step"])
        if row["state"] == "finished":
            assert row["rung"] == 18
    lines = CliRunner().invoke(cli, ["export", str(whole.path)]).output.splitlines()
    assert "estimate_sd,last_value,rung,config.C" in lines[0]
    plain = trial_rows(SweepFolder(make_folder(tmp_path / "plain")).history)
    assert {(row["last_value"], row["rung"]) for row in plain} == {(None, None)}


def test_status_says_where_it_stands(whole: SweepFolder, tmp_path: Path) -> None:
    found = status(whole)
    assert (found["state"], found["n_trials"], found["in_full"]) == (
        "finished", 8, n_full(whole.history),
    )  # fmt: skip
    assert found["rungs"] == [row.to_json() for row in rung_rows(whole.history)]
    assert json.loads(json.dumps(found)) == found
    told = CliRunner().invoke(cli, ["status", str(whole.path)]).output
    assert "agreement" in told
    assert f"trial {found['best']['trial']}" in told
    assert "rungs" not in status(SweepFolder(make_folder(tmp_path / "plain")))


def test_status_lists_who_waits(whole: SweepFolder, tmp_path: Path) -> None:
    told = CliRunner().invoke(cli, ["status", str(whole.path), "--paused"]).output
    found = waiting(whole.history)
    assert len(told.splitlines()) == len(found) + 1
    assert found[-1].reason in told
    listed = CliRunner().invoke(cli, ["status", str(whole.path), "--paused", "--json"]).output
    assert json.loads(listed) == [one.to_json() for one in found]
    plain = str(make_folder(tmp_path / "plain"))
    assert "no trial waits" in CliRunner().invoke(cli, ["status", plain, "--paused"]).output
    both = CliRunner().invoke(cli, ["status", plain, "--paused", "--watch"])
    assert both.exit_code == 2


def test_a_best_that_was_trained_in_part_is_told_with_its_step(early: SweepFolder) -> None:
    best, history = early.best, early.history
    assert best.value is None
    assert best.partial is not None
    where = f"{best.partial.value:.6g} at step 6 of 18"
    assert f"best loss {where})" in repr(early)
    assert where in early._repr_html_()
    found = status(early)["best"]
    assert (found["value"], found["last_value"], found["step"], found["full"]) == (
        None, best.last_value, 6, 18,
    )  # fmt: skip
    assert where in CliRunner().invoke(cli, ["status", str(early.path)]).output
    shown = CliRunner().invoke(cli, ["best", str(early.path)]).output
    assert f"value {best.partial.value:.5g} at step 6 of 18" in shown
    listed = json.loads(CliRunner().invoke(cli, ["best", str(early.path), "--json"]).output)
    assert (listed["value"], listed["last_value"]) == (None, best.last_value)
    assert history.rungs == RUNGS
