"""Repeats of the best configs: who is due, what the means are, and that replay is exact."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

from nasbo.errors import NasboError
from nasbo.history import Trial, event, replay
from nasbo.journal import read_events
from nasbo.methods import make_method
from nasbo.repeats import due_repeats, is_complete
from nasbo.rounds import Rounds, Schedule
from nasbo.search import Search
from nasbo.space import load_space

SPACE = load_space({"x": {"type": "float", "range": [0, 1]}})
NOTES = {"repeats": 2, "repeat_top": 2, "trials": 6}


def value(trial: Trial) -> float:
    """Noise of the trial's number on top of the config."""
    return float(trial.config["x"]) + 0.1 * (trial.id * 7 % 5)


def run(search: Search, budget: int = 6, kind: str = "round", slots: int = 2) -> Rounds:
    """The whole search, as the Ray searcher drives it."""
    rounds = Rounds(search, Schedule(kind, batch=2, budget=budget))
    while True:
        n = rounds.wanted(slots)
        if n:
            rounds.add(search._method.suggest(search.history, n), 0.0, [])
        trial = rounds.next_trial()
        if trial is None and rounds.is_done:
            return rounds
        if trial is not None:
            search.start(trial)
            search.tell(trial, value(trial))


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
        own = [t for t in history.repeats if t.repeat_of == trial.id]
        assert trial.values == [value(trial), *(value(t) for t in own)]
        assert trial.value == fmean(trial.values)
        assert all(t.config == trial.config and t.source == "repeat" for t in own)
    assert history.best is history.ranked()[0]
    assert len(history.best_so_far()) == 6


def test_the_surrogate_sees_the_means_and_not_the_repeats() -> None:
    search = Search(SPACE, "random", notes=NOTES)
    run(search)
    rows = search.history.rows()
    assert [trial.id for trial, _ in rows] == [t.id for t in search.history.configs]
    assert {score for _, score in rows} == {-(t.value or 0) for t in search.history.configs}
    method = make_method("random", SPACE, 0)
    assert len(method.suggest(search.history, 2)) == 2


def test_the_next_round_waits_for_the_repeats_of_the_last() -> None:
    search = Search(SPACE, "random", notes=NOTES)
    run(search)
    order = [(e["event"], e.get("trial")) for e in search.events]
    opened = [place for place, (kind, _) in enumerate(order) if kind == "round"]
    ended = {t: place for place, (kind, t) in enumerate(order) if kind == "finished"}
    begun = {t: place for place, (kind, t) in enumerate(order) if kind == "repeated"}
    assert begun
    for place in opened:
        assert all(ended[t] < place for t, since in begun.items() if since < place)


def test_replay_is_exact_and_resume_goes_on_the_same(tmp_path: Path) -> None:
    whole = Search(SPACE, "random", journal=tmp_path / "whole", notes=NOTES)
    run(whole)
    told = [(t.id, t.config, t.values, t.value, t.repeat_of) for t in whole.history.trials]
    again = replay(SPACE, "min", read_events(tmp_path / "whole"))
    assert [(t.id, t.config, t.values, t.value, t.repeat_of) for t in again.trials] == told
    part = Search(SPACE, "random", journal=tmp_path / "part", notes=NOTES)
    rounds = Rounds(part, Schedule(batch=2, budget=6))
    rounds.add(part._method.suggest(part.history, rounds.wanted(2)), 0.0, [])
    while (trial := rounds.next_trial()) is not None:
        part.start(trial)
        part.tell(trial, value(trial))
    rounds.wanted(2)  # the repeats are queued, then everything stops
    part.close()
    back = Search(SPACE, "random", journal=tmp_path / "part", notes=NOTES)
    run(back)
    assert [(t.id, t.config, t.values, t.value, t.repeat_of) for t in back.history.trials] == told


def test_failed_repeats_are_left_out_and_not_made_up_for() -> None:
    search = Search(SPACE, "random", notes=NOTES)
    (first,) = search.ask(1)
    search.tell(first, 1.0)
    bad, good = search.repeat(*due_repeats(search.history))
    search.tell(bad, error="crashed")
    search.tell(good, 2.0)
    assert search.history.trials[0].values == [1.0, 2.0]
    assert search.history.trials[0].value == 1.5
    assert due_repeats(search.history) == []


def test_trials_of_the_same_network_share_the_mean() -> None:
    search = Search(SPACE, "random", notes=NOTES)
    first, twin = search.ask(2)
    search.tell(first, 1.0)
    search.answer(search.history.trials[twin.id], search.history.trials[first.id])
    assert [t.id for t in due_repeats(search.history)] == [0, 0]
    for trial in search.repeat(*due_repeats(search.history)):
        search.tell(trial, 4.0)
    assert [t.value for t in search.history.configs] == [3.0, 3.0]
    assert search.history.trials[1].same_as == 0
    (third,) = search.ask(1)
    search.answer(search.history.trials[third.id], search.history.trials[twin.id])
    assert (search.history.trials[third.id].same_as, search.history.trials[third.id].value) == (
        0,
        3,
    )


def test_repeats_can_begin_before_their_first_trial_has_ended() -> None:
    search = Search(SPACE, "random")
    (first,) = search.ask(1)
    (repeat,) = search.repeat(first)
    search.tell(repeat, 3.0)
    assert search.history.best is None
    search.tell(first, 1.0)
    assert search.history.best is not None
    assert search.history.best.values == [1.0, 3.0]
    with pytest.raises(NasboError, match="a repeat, is not repeated"):
        search.repeat(search.history.trials[repeat.id])


def test_repeats_may_be_asked_for_later() -> None:
    search = Search(SPACE, "random")
    for trial in search.ask(4):
        search.tell(trial, value(trial))
    assert is_complete(search.history, 4)
    search.record(event("repeating", repeats=1, top=3))
    assert not is_complete(search.history, 4)
    assert len(due_repeats(search.history)) == 3
