"""Rungs: pauses, promotions, the budget, and equality after a resume."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

import numpy as np
import pytest

from nasbo.errors import NasboError
from nasbo.history import History, Run, Rungs, parse_rungs
from nasbo.history.journal import read_events
from nasbo.search import Decider, Driver, Next, Schedule, Search
from nasbo.search.repeats import is_complete
from nasbo.search.rungs import agreement, due_promotions, misleading_rungs, room, standings
from tests.rung_search import drive, make, train, value


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
    assert parse_rungs([4, 11, 33, 100], 100) == Rungs((4, 11, 33, 100))
    assert parse_rungs([2, 6], None, eta=2) == Rungs((2, 6), 2)


@pytest.mark.parametrize(
    ("words", "full", "told"),
    [
        ("auto", None, "steps"),
        ("often", 100, "auto, off or a list of steps, got 'often'"),
        ([4, 11], 100, "must be a full training, 100"),
        ([11, 4], None, "must increase"),
        ([4], None, "at least two"),
        ([0, 4], None, "whole numbers"),
    ],
)
def test_bad_rungs_are_said(words: str | list[int], full: int | None, told: str) -> None:
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


def test_ask_and_tell_with_rungs(tmp_path: Path) -> None:
    def train(until: int | None, start: int, number: int) -> float:
        assert start < (until or 18)
        return float(number % 7) + 1 / (until or 18)

    search = Search("svm", method="random", journal=tmp_path / "j.jsonl", rungs=[2, 6, 18])
    for _ in range(40):
        (trial,) = search.ask()
        search.tell(trial, train(trial.until, trial.resumed_from, trial.id))
    counts = search.history.state_counts()
    assert counts["finished"] >= 1
    assert counts["paused"] >= 10
    assert search.best.state == "finished"
    (trial,) = search.ask()
    assert trial.until in (2, 6, None)
    search.close()
    again = Search("svm", method="random", journal=tmp_path / "j.jsonl", rungs=(2, 6, 18))
    (same,) = again.ask()
    assert (same.id, same.until, same.resumed_from) == (trial.id, trial.until, trial.resumed_from)
    again.tell(same, 3.0, step=1)
    assert again.history.run(same.id).is_paused
    again.close()
    with pytest.raises(NasboError, match="was begun with rungs="):
        Search("svm", method="random", journal=tmp_path / "j.jsonl")


def test_a_value_that_is_not_finite_is_no_pause() -> None:
    search = Search("svm", method="random", rungs=[2, 6])
    (trial,) = search.ask()
    search.tell(trial, math.nan)
    assert search.trials[0].cause == "diverged"


def test_a_search_is_complete_when_its_budget_pays_nothing_more() -> None:
    one = make(4)
    while isinstance(run := one.next(1), Run):
        assert not is_complete(one.search.history, 4), "a run is open"
        train(one, run)
        if one.search.history.n_ended >= 4 and one.search.history.spent < 3:
            assert not is_complete(one.search.history, 4), "trials have paused, none is trained"
    assert is_complete(one.search.history, 4)
    assert not is_complete(one.search.history, 8)


def test_why_a_trial_went_on_is_remembered() -> None:
    one = make(8)
    drive(one)
    for trial in one.search.history.trials:
        assert set(trial.first.reasons) == {
            step for step in trial.first.pauses if step != trial.first.until
        }
    assert any("at step 2" in text for t in one.search.history.trials
               for text in t.first.reasons.values())  # fmt: skip


def test_what_failed_on_its_way_up_is_not_the_best() -> None:
    one = make(100)
    while not isinstance(run := one.next(1), Run) or run.until != 6:
        train(one, run)
    one.on_report(run.number, run.resumed_from + 1, math.nan, {})
    one.on_end(run.number, math.nan, step=run.resumed_from + 1)
    history = one.search.history
    assert history.trial(run.number).cause == "diverged"
    assert history.best is not None
    assert history.best.id != run.number


def test_a_run_that_is_stopped_on_its_way_was_not_seen_at_its_target() -> None:
    one = make(100)
    while not isinstance(run := one.next(1), Run) or run.until != 6:
        train(one, run)
    one.on_end(run.number, 0.01, error="stopped", step=3)
    history = one.search.history
    assert standings(history, 6) == []
    assert history.trial(run.number).partial == (3, 0.01)


def test_a_trial_that_begins_again_is_charged_what_it_trains() -> None:
    one = make(100, rungs=Rungs((2, 6, 18), resumes=False))
    while not isinstance(run := one.next(1), Run) or run.until != 6:
        train(one, run)
    history = one.search.history
    assert history.cost(history.trial(run.number)) == 2 + 6
    one.on_end(run.number, error="crashed")
    assert history.cost(history.trial(run.number)) == 2


def test_a_rung_that_tells_well_is_not_dropped_by_chance() -> None:
    """The ranks of the best third agree less than those of all: .65 of .9 here."""

    def noisy(history: History, number: int, step: int) -> float:
        rng = np.random.default_rng([number, step])
        level = np.random.default_rng(number).normal()
        return float(level + (0.45 * rng.normal() if step < 18 else 0.0))

    for seed in range(6):
        one = make(12)
        drive(one, curve=lambda h, n, s, seed=seed: noisy(h, n + 1000 * seed, s))
        rungs = one.search.history.rungs
        assert rungs is not None
        assert not rungs.dropped


def test_the_end_of_a_budget_uses_all_slots() -> None:
    one = make(30, "async")
    drive(one, slots=16)
    history = one.search.history
    due = due_promotions(history, 60, is_ending=True, slots=16)
    assert len(due) >= 16
    assert len(due_promotions(history, 60, is_ending=True)) < 16


class Dying:
    """A decider whose driver is killed during a decision."""

    is_busy = False

    def begin(self, search: Search, n: int) -> None:
        raise KeyboardInterrupt

    def fetch(self, is_idle: bool) -> None:
        return None


def test_a_driver_that_dies_while_it_decides_leaves_no_half_of_a_round(tmp_path: Path) -> None:
    """If only promotions were written, the method would later see other results."""

    def searched(journal: Path | None = None, decider: Decider | None = None) -> Driver:
        search = Search("svm", method="evolution", journal=journal, rungs=[2, 6, 18])
        return Driver(search, Schedule(budget=6), decider)

    one = searched()
    whole = drive(one)
    configs = [trial.config for trial in one.search.trials]
    file, parts = tmp_path / "journal.jsonl", []
    for n in (8, 14, 20):
        one = searched(file)
        parts += drive(one, n - len(parts))
        one.search.close()
        one = searched(file, Dying())
        with contextlib.suppress(KeyboardInterrupt):
            while isinstance(run := one.next(1), Run):
                parts.append((run.number, run.resumed_from, train(one, run)))
        one.search.close()
    one = searched(file)
    parts += drive(one)
    assert parts == whole
    assert [trial.config for trial in one.search.trials] == configs
    one.search.close()
