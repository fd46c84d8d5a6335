"""Repeats of the best configs: which are due, their means, and exact replay."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

from nasbo.errors import NasboError
from nasbo.history import History, Run, Trial, replay
from nasbo.history.events import RepeatsChanged
from nasbo.history.journal import read_events
from nasbo.methods import make_method
from nasbo.search import Driver, Schedule, Search
from nasbo.search.repeats import due_repeats, is_complete
from nasbo.space import load_space

SPACE = load_space({"x": {"type": "float", "range": [0, 1]}})
NOTES = {"repeats": 2, "repeat_top": 2, "trials": 6}


def value(trial: Trial, run: Run | None = None) -> float:
    """The config's value plus noise from the run's number."""
    number = trial.id if run is None else run.number
    return float(trial.config["x"]) + 0.1 * (number * 7 % 5)


def told(history: History) -> list[tuple[object, ...]]:
    """What must be equal after reading a journal."""
    return [
        (t.id, t.config, t.values, t.value, [(run.number, run.value) for run in t.runs])
        for t in history.trials
    ]


def run(search: Search, budget: int = 6, kind: str = "round", slots: int = 2) -> Driver:
    """The whole search, as the Ray searcher drives it."""
    rounds = Driver(search, Schedule(kind, batch=2, budget=budget))
    while True:
        n = rounds.wanted(slots)
        if n:
            rounds.add(search._method.suggest(search.history, n), 0.0, [])
        run = rounds.next_waiting()
        if run is None and rounds.is_done:
            return rounds
        if run is not None:
            search.start(run)
            search.tell(run, value(search.history.trial(run.number), run))


@pytest.mark.parametrize("kind", ["round", "async"])
def test_the_best_end_with_their_repeats_outside_the_budget(kind: str) -> None:
    search = Search(SPACE, "random", notes=NOTES)
    run(search, kind=kind)
    history = search.history
    assert history.n_suggested == history.n_ended == 6
    assert due_repeats(history) == []
    assert is_complete(history, 6)
    for trial in history.ranked()[:2]:
        assert len(trial.values) == 3
        assert trial.values == tuple(value(trial, run) for run in trial.runs)
        assert trial.value == fmean(trial.values)
        assert [run.is_repeat for run in trial.runs] == [False, True, True]
    assert history.best is history.ranked()[0]
    assert len(history.best_so_far()) == 6


def test_the_surrogate_sees_the_means_and_not_the_repeats() -> None:
    search = Search(SPACE, "random", notes=NOTES)
    run(search)
    rows = search.history.rows()
    assert [trial.id for trial, _ in rows] == [t.id for t in search.history.trials]
    assert {score for _, score in rows} == {-(t.value or 0) for t in search.history.trials}
    method = make_method("random", SPACE, 0)
    assert len(method.suggest(search.history, 2)) == 2


def test_the_next_round_waits_for_the_repeats_of_the_last() -> None:
    search = Search(SPACE, "random", notes=NOTES)
    run(search)
    order = [(e.kind, getattr(e, "run", None)) for e in search.events]
    opened = [index for index, (kind, _) in enumerate(order) if kind == "round"]
    ended = {t: index for index, (kind, t) in enumerate(order) if kind == "ended"}
    begun = {t: index for index, (kind, t) in enumerate(order) if kind == "repeated"}
    assert begun
    for index in opened:
        assert all(ended[t] < index for t, since in begun.items() if since < index)


def test_replay_is_exact_and_resume_goes_on_the_same(tmp_path: Path) -> None:
    whole = Search(SPACE, "random", journal=tmp_path / "whole", notes=NOTES)
    run(whole)
    again = replay(SPACE, "min", read_events(tmp_path / "whole"))
    assert told(again) == told(whole.history)
    part = Search(SPACE, "random", journal=tmp_path / "part", notes=NOTES)
    rounds = Driver(part, Schedule(batch=2, budget=6))
    rounds.add(part._method.suggest(part.history, rounds.wanted(2)), 0.0, [])
    while (run_ := rounds.next_waiting()) is not None:
        part.start(run_)
        part.tell(run_, value(part.history.trial(run_.number), run_))
    rounds.wanted(2)  # the repeats are queued, then the process ends
    part.close()
    back = Search(SPACE, "random", journal=tmp_path / "part", notes=NOTES)
    run(back)
    assert told(back.history) == told(whole.history)


def test_failed_repeats_are_left_out_and_not_made_up_for() -> None:
    search = Search(SPACE, "random", notes=NOTES)
    (first,) = search.ask(1)
    search.tell(first, 1.0)
    bad, good = search.repeat(*due_repeats(search.history))
    search.tell(bad, error="crashed")
    search.tell(good, 2.0)
    assert search.history.trials[0].values == (1.0, 2.0)
    assert search.history.trials[0].value == 1.5
    assert due_repeats(search.history) == []


def test_trials_of_the_same_network_share_the_mean() -> None:
    search = Search(SPACE, "random", notes=NOTES)
    first, twin = search.ask(2)
    search.tell(first, 1.0)
    search.answer(twin, search.history.trial(first.id))
    assert [t.id for t in due_repeats(search.history)] == [0, 0]
    for run_ in search.repeat(*due_repeats(search.history)):
        search.tell(run_, 4.0)
    assert [t.value for t in search.history.trials] == [3.0, 3.0]
    assert search.history.trials[1].twin == 0
    (third,) = search.ask(1)
    search.answer(third, search.history.trial(twin.id))
    assert (search.history.trial(third.id).twin, search.history.trial(third.id).value) == (0, 3)


def test_repeats_can_begin_before_their_first_trial_has_ended() -> None:
    search = Search(SPACE, "random")
    (first,) = search.ask(1)
    (repeat,) = search.repeat(first)
    search.tell(repeat, 3.0)
    assert search.history.best is None
    search.tell(first, 1.0)
    assert search.history.best is not None
    assert search.history.best.values == (1.0, 3.0)
    (bad,) = search.ask(1)
    search.tell(bad, error="crashed")
    with pytest.raises(NasboError, match="a trial that failed is not repeated"):
        search.repeat(search.history.trial(bad.id))


def test_repeats_may_be_asked_for_later() -> None:
    search = Search(SPACE, "random")
    for trial in search.ask(4):
        search.tell(trial, value(trial))
    assert is_complete(search.history, 4)
    search.record(RepeatsChanged(repeats=1, top=3))
    assert not is_complete(search.history, 4)
    assert len(due_repeats(search.history)) == 3


def test_a_repeat_that_fails_is_counted_apart() -> None:
    search = Search(SPACE, "random", notes=NOTES)
    (first,) = search.ask(1)
    search.tell(first, 1.0)
    (bad, _) = search.repeat(*due_repeats(search.history))
    search.tell(bad, error="crashed")
    assert search.history.state_counts() == {"finished": 1}
    assert search.history.cause_counts() == {}, "no trial failed"
    assert [run.cause for run in search.history.repeats] == ["crashed", None]
