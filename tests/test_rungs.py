"""Rungs: who pauses, who goes on, what the budget pays, and that a resume does not change it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from nasbo.errors import NasboError
from nasbo.history import History, Run, Rungs, parse_rungs
from nasbo.history.journal import read_events
from nasbo.search import Driver, Next, Schedule, Search, Verdict
from nasbo.search.repeats import is_complete
from nasbo.search.rungs import agreement, due_promotions, misleading_rungs, room, standings

RUNGS = Rungs((2, 6, 18))


def value(history: History, number: int, step: int) -> float:
    """A curve that falls with the steps; smaller trial numbers modulo 7 are better."""
    return (number * 5 % 7) + 10.0 / step


def make(
    budget: int = 4, kind: str = "round", rungs: Rungs | None = RUNGS, journal: Path | None = None
) -> Driver:
    notes = {"rungs": rungs.to_json()} if rungs else {}
    search = Search("svm", method="random", journal=journal, notes=notes)
    return Driver(search, Schedule(kind, budget=budget))


def train(one: Driver, run: Run, curve=value) -> int:
    """Train a run to its target or its end; where it got to."""
    full = one.search.history.rungs.full if one.search.history.rungs else 18
    for step in range(run.resumed_from + 1, full + 1):
        now = curve(one.search.history, run.number, step)
        if math.isnan(now):
            one.on_end(run.number, now, step=step)
            return step
        if one.on_report(run.number, step, now, {}) is Verdict.PAUSE:
            one.on_end(run.number, now, error="paused", step=step)
            return step
    one.on_end(run.number, now, step=full)
    return full


def drive(one: Driver, n: int = 10_000, curve=value, slots: int = 1) -> list[tuple[int, int, int]]:
    """(run, from, to) of each stretch."""
    done = []
    while len(done) < n and isinstance(run := one.next(slots), Run):
        done.append((run.number, run.resumed_from, train(one, run, curve)))
    return done


def test_rungs_of_a_training() -> None:
    for full, steps in (
        (100, (4, 11, 33, 100)), (81, (3, 9, 27, 81)), (18, (2, 6, 18)), (12, (4, 12)), (6, (2, 6)),
        (51, (2, 6, 17, 51)),
    ):  # fmt: skip
        rungs = Rungs.auto(full)
        assert rungs is not None
        assert rungs.steps == steps
    assert Rungs.auto(3) is None
    assert parse_rungs("off", 100) is None
    assert parse_rungs("4,11,33,100", 100) == Rungs((4, 11, 33, 100))
    assert parse_rungs([2, 6], None, eta=2) == Rungs((2, 6), 2)


@pytest.mark.parametrize(
    ("words", "full", "told"),
    [
        ("auto", None, "steps"),
        ("4,x", 100, "4,x"),
        ("4,11", 100, "must be a full training, 100"),
        ("11,4", None, "must increase"),
        ("4", None, "at least two"),
        ("0,4", None, "whole numbers"),
    ],
)
def test_bad_rungs_are_said(words: str, full: int | None, told: str) -> None:
    with pytest.raises(NasboError, match=told):
        parse_rungs(words, full)


def test_eta_is_checked() -> None:
    with pytest.raises(NasboError, match="eta must be a whole number >= 2, got 1"):
        Rungs((2, 6), eta=1)


def test_rungs_survive_json() -> None:
    rungs = Rungs((2, 6, 18), 2, resumes=False)
    assert Rungs.from_json(rungs.to_json()) == rungs
    assert Rungs.from_json(None) is None


@pytest.mark.parametrize("kind", ["round", "async"])
def test_trials_begin_at_the_first_rung_and_the_best_go_on(kind: str) -> None:
    one = make(8, kind)
    stretches = drive(one)
    history = one.search.history
    assert {to for _, start, to in stretches if start == 0} == {2}
    assert {(start, to) for _, start, to in stretches if start} == {(2, 6), (6, 18)}
    n_at = [len(standings(history, step)) for step in (2, 6)]
    finished = [trial for trial in history.trials if trial.state == "finished"]
    assert n_at[0] > 2 * n_at[1] > 2 * len(finished) > 0
    assert history.best is not None
    assert history.best.value == min(trial.value for trial in finished if trial.value is not None)
    assert history.spent <= 8
    assert history.spent > 8 - 12 / 18
    assert one.next(1) is Next.DONE
    assert is_complete(history, 8)


def test_a_promotion_needs_eta_trials_and_a_place_among_the_best() -> None:
    one = make(100, "async")
    for _ in range(8):
        run = one.next(1)
        assert isinstance(run, Run)
        if run.resumed_from:
            break
        train(one, run)
    seen = standings(one.search.history, 2)
    assert len(seen) + run.is_open >= 3
    assert run.number == seen[0].trial.id, "the best of them"


def test_of_the_design_a_third_and_one_per_subspace_goes_on() -> None:
    one = make(100)
    n = sum(1 for _ in one.search.space.subspaces())
    drive(one, n * 2)
    history = one.search.history
    assert all(trial.source == "design" for trial in history.trials)
    due = due_promotions(history, 100, is_ending=False)
    assert {history.trial(one.run).subspace for one in due} == set(range(n))
    assert all(one.until == 6 for one in due)


def test_a_budget_is_trainings_worth_and_its_end_only_promotes() -> None:
    one = make(6)
    stretches = drive(one)
    spent, last_new = 0.0, 0.0
    for _, start, to in stretches:
        spent += (to - start) / 18
        last_new = spent if start == 0 else last_new
    assert spent == pytest.approx(one.search.history.spent)
    assert 0.5 * 6 < last_new <= 0.85 * 6 + 1e-9
    assert spent <= 6
    assert stretches[-1][2] == 18


def test_without_rungs_nothing_changes() -> None:
    one = make(5, rungs=None)
    assert [to for *_, to in drive(one)] == [18] * 5
    assert one.search.history.spent == 5
    assert room(one.search.history, 7) == 2


def test_failures_stay_behind_and_are_charged() -> None:
    def failing(history: History, number: int, step: int) -> float:
        return float("nan") if number % 2 else value(history, number, step)

    one = make(6)
    drive(one, curve=failing)
    history = one.search.history
    assert history.spent <= 6
    bad = [trial for trial in history.trials if trial.cause == "diverged"]
    assert bad
    assert all(trial.step == 1 for trial in bad)
    last = standings(history, 2)[-1]
    assert (last.trial.cause, last.is_paused) == ("diverged", False)


def test_a_trainer_that_cannot_continue_is_charged_from_the_start() -> None:
    one = make(8, rungs=Rungs((2, 6, 18), resumes=False))
    stretches = drive(one)
    assert {start for _, start, _ in stretches} == {0}
    history = one.search.history
    assert sum(to for *_, to in stretches) / 18 == pytest.approx(history.spent)
    assert history.spent <= 8
    assert any(to == 18 for *_, to in stretches)


@pytest.mark.parametrize("kind", ["round", "async"])
@pytest.mark.parametrize("n_before", [1, 5, 12, 20])
def test_a_resumed_search_promotes_what_it_would_have(
    tmp_path: Path, kind: str, n_before: int
) -> None:
    whole = drive(make(5, kind))
    file, parts = tmp_path / "journal.jsonl", []
    for n in (n_before, 10_000):
        one = make(5, kind, journal=file)
        parts += drive(one, n)
        if n == n_before and isinstance(lost := one.next(1), Run):  # its driver is killed
            one.on_report(lost.number, lost.resumed_from + 1, 9.0, {})
        one.search.close()
    assert parts == whole
    told = [line for line in read_events(file) if line["event"] == "targeted" and line["reason"]]
    assert len(told) == sum(start > 0 for _, start, _ in whole)


def test_the_model_learns_from_last_values_and_the_best_is_trained_in_full() -> None:
    one = make(100)
    drive(one, 6)
    history = one.search.history
    rows = {trial.id: score for trial, score in history.rows()}
    for trial in history.trials:
        if trial.partial is not None:
            assert rows[trial.id] == -trial.partial.value
    assert history.best is not None
    assert history.best.value is None, "none is trained in full yet"
    assert history.best.partial is not None
    furthest = max(trial.step for trial in history.trials)
    assert history.best.partial.step == furthest


def test_a_trial_keeps_its_last_value_while_it_goes_on() -> None:
    one = make(100)
    while not isinstance(run := one.next(1), Run) or not run.resumed_from:
        train(one, run)
    trial = one.search.history.trial(run.number)
    assert trial.is_open
    assert trial.partial == (2, value(one.search.history, run.number, 2))
    assert trial.id in [row.id for row, _ in one.search.history.rows()]


def test_a_rung_that_misleads_is_dropped_for_new_trials() -> None:
    def lying(history: History, number: int, step: int) -> float:
        return float(number % 11) if step <= 2 else -float(number % 11)

    one = make(40)
    stretches = drive(one, curve=lying)
    rungs = one.search.history.rungs
    assert rungs is not None
    assert rungs.dropped == {2}
    found, n = agreement(one.search.history, 2, 6)
    assert found < -0.9
    assert n >= 8
    first = next(at for at, (_, start, to) in enumerate(stretches) if start == 0 and to == 6)
    assert all(to == 6 for _, start, to in stretches[first:] if start == 0)
    assert misleading_rungs(one.search.history) == []


def test_a_dropped_rung_does_not_make_earlier_trials_dearer() -> None:
    def lying(history: History, number: int, step: int) -> float:
        return float(number % 11) if step <= 2 else -float(number % 11)

    one = make(12)
    n_steps = sum(to - start for _, start, to in drive(one, curve=lying))
    history = one.search.history
    assert history.rungs is not None
    assert history.rungs.dropped == {2}
    assert history.spent == pytest.approx(n_steps / 18)
    assert history.spent > 12 - 12 / 18


def test_with_many_slots_a_round_is_decided_as_a_whole() -> None:
    one = make(100)
    drive(one, 8)
    first = [one.next(8) for _ in range(9)]
    runs = [run for run in first if isinstance(run, Run)]
    assert len(runs) == 8, "as many as slots"
    assert first[-1] is Next.WAIT
    n_promoted = sum(run.resumed_from > 0 for run in runs)
    assert n_promoted >= 4, "one of each subspace at least"
    assert [run.resumed_from > 0 for run in runs[:n_promoted]] == [True] * n_promoted
    assert one.search.history.n_suggested == 16, "and as many new ones as slots"
