"""When the method is asked, and for how many configs: rounds, batches, shares, deadlines, async."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nasbo.errors import NasboError
from nasbo.history import Run, Trial
from nasbo.search import Driver, Policies, Schedule, Search
from nasbo.space import Space


class Desk:
    """The workers' side: takes trials and returns them, as the Ray searcher does."""

    def __init__(self, space: Any = "svm", journal: Path | None = None, **schedule: Any) -> None:
        self.search = Search(space, method="random", journal=journal)
        self.rounds = Driver(self.search, Schedule(**schedule))
        self.running: list[Run] = []

    def decide(self, slots: int | None) -> int:
        """Ask the method if it is due; returns the number of new configs."""
        if not (n := self.rounds.wanted(slots)):
            return 0
        unseen = self.search.history.open_numbers
        suggestions = self.search._method.suggest(self.search.history, n)
        self.rounds.add(suggestions, 0.1, unseen)
        return len(suggestions)

    def start(self, n: int) -> int:
        for _ in range(n):
            if (run := self.rounds.next_waiting()) is None:
                break
            self.search.start(run)
            self.running.append(run)
        return len(self.running)

    def end(self, n: int) -> None:
        for trial in [self.running.pop(0) for _ in range(n)]:
            self.search.tell(trial, 1.0)

    def full_round(self, slots: int) -> int:
        n = self.decide(slots)
        self.start(n)
        self.end(n)
        return n

    def sizes(self) -> list[int]:
        return [round_.size for round_ in self.search.history.rounds]


def test_next_round_waits_for_all() -> None:
    desk = Desk()
    assert desk.decide(2) == 8
    for _ in range(4):
        assert desk.decide(2) == 0
        assert desk.start(2) == 2
        desk.end(2)
    assert desk.decide(2) == 4
    desk.start(4)
    desk.end(3)
    assert desk.decide(2) == 0
    desk.end(1)
    assert desk.decide(2) == 4
    assert desk.sizes() == [8, 4, 4]


@pytest.mark.parametrize(
    ("slots", "batch", "size"),
    [(1, None, 4), (4, None, 4), (7, None, 7), (None, None, 4), (2, 1, 1), (7, 3, 3)],
)
def test_size_of_a_round(slots: int | None, batch: int | None, size: int) -> None:
    desk = Desk(batch=batch)
    assert desk.full_round(1) == 8
    assert desk.rounds.wanted(slots) == size


def test_many_subspaces_take_as_many_as_slots(thousands_space: Space) -> None:
    desk = Desk(thousands_space)
    assert desk.full_round(3) == 24
    assert desk.full_round(3) == 3
    assert desk.full_round(11) == 11


def test_budget_counts_what_was_decided() -> None:
    desk = Desk(budget=11)
    assert desk.rounds.left == 11
    assert desk.full_round(2) == 8
    assert not desk.rounds.is_done
    assert desk.full_round(2) == 3
    assert desk.rounds.is_done
    assert desk.rounds.wanted(2) == 0
    assert Desk().rounds.left is None


@pytest.mark.parametrize(("share", "needed"), [(0.5, 4), (0.55, 5), (0.51, 5), (0.01, 1)])
def test_share_of_a_round(share: float, needed: int) -> None:
    desk = Desk(share=share)
    desk.decide(8)
    desk.start(8)
    desk.end(needed - 1)
    assert desk.decide(8) == 0
    desk.end(1)
    assert desk.decide(8) == 8
    assert desk.search.history.rounds[-1].unseen == tuple(range(needed, 8))


def test_share_is_not_lost_to_rounding(thousands_space: Space) -> None:
    desk = Desk(thousands_space, share=0.55, batch=20)
    desk.full_round(1)
    desk.decide(20)
    desk.start(20)
    desk.end(11)
    assert desk.rounds.wanted(20) == 20


def test_deadline_opens_the_next_round() -> None:
    late, patient = Desk(deadline_s=1e-9), Desk(deadline_s=1e9)
    for desk in (late, patient):
        desk.decide(8)
        desk.start(8)
    assert patient.rounds.wanted(8) == 0
    assert late.decide(8) == 8
    assert late.search.history.rounds[-1].unseen == tuple(range(8))


def test_queue_is_emptied_before_the_next_round() -> None:
    desk = Desk(deadline_s=1e-9, share=0.1)
    desk.decide(2)
    desk.start(2)
    desk.end(2)
    assert desk.rounds.wanted(2) == 0


def test_async_refills_each_slot_at_once() -> None:
    desk = Desk(kind="async", budget=14)
    assert desk.decide(3) == 3
    assert desk.start(3) == 3
    assert desk.decide(3) == 0
    desk.end(1)
    assert desk.decide(3) == 1
    desk.start(1)
    desk.end(3)
    assert desk.decide(5) == 5
    desk.start(5)
    assert desk.decide(3) == 0
    desk.end(5)
    assert desk.decide(50) == 5
    assert desk.search.history.n_suggested == 14
    assert [t.source for t in desk.search.history.trials[:8]] == ["design"] * 8
    assert desk.sizes() == [3, 1, 5, 5]


def test_async_without_known_slots() -> None:
    desk = Desk(kind="async")
    assert desk.decide(None) == 8
    desk.start(8)
    assert desk.decide(None) == 1


def test_used_up_space(finite_space: Space) -> None:
    desk = Desk(finite_space, budget=50)
    while desk.full_round(2):
        pass
    assert desk.search.history.n_suggested == 5
    assert desk.rounds.search.history.is_exhausted
    assert desk.rounds.is_done


def test_restart_begins_with_the_open_trials(tmp_path: Path) -> None:
    first = Desk(journal=tmp_path / "run.jsonl")
    first.decide(2)
    first.start(3)
    first.end(1)
    first.search.close()
    second = Desk(journal=tmp_path / "run.jsonl")
    assert second.decide(2) == 0
    second.start(2)
    assert [run.number for run in second.running] == [1, 2]
    second.rounds.forget({4, 5})
    second.start(9)
    assert [run.number for run in second.running] == [1, 2, 3, 6, 7]


def test_requeued_goes_first_and_screened_is_skipped() -> None:
    search = Search("svm", method="random")

    def screen(run: Run) -> bool:
        if run.number != 1:
            return False
        search.tell(run, error="invalid")
        return True

    rounds = Driver(search, Schedule(), policies=Policies(screens=(screen,), retry=lambda *_: True))
    rounds.add(search._method.suggest(search.history, rounds.wanted(1)), 0.1, [])
    first = rounds.next_waiting()
    assert first is not None
    search.start(first)
    assert rounds.on_end(first.number, error="lost"), "it goes to the front"
    assert [run.number for run in (rounds.next_waiting(), rounds.next_waiting()) if run] == [0, 2]
    assert search.trials[1].cause == "invalid"


def test_the_dearest_trials_of_a_round_start_first() -> None:
    search = Search("svm", method="random")
    rounds = Driver(
        search, Schedule(), policies=Policies(cost=lambda trial: float(trial.config["C"]))
    )
    rounds.add(search._method.suggest(search.history, 8), 0.0, [])
    started: list[Trial] = []
    while (run := rounds.next_waiting()) is not None:
        started.append(search.history.trial(run.number))
    costs = [trial.config["C"] for trial in started]
    assert costs == sorted(costs, reverse=True)
    assert [trial.id for trial in started] != sorted(trial.id for trial in started)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": "later"}, "schedule must be 'round' or 'async', got 'later'"),
        ({"batch": 0}, "batch must be an integer >= 1, got 0"),
        ({"batch": -1}, "got -1"),
        ({"batch": 1.5}, "got 1.5"),
        ({"share": 0}, "0 < share <= 1 must hold, but got 0"),
        ({"share": "a"}, "but got 'a'"),
        ({"share": float("nan")}, "but got nan"),
        ({"deadline_s": -1}, "deadline_s must be seconds above 0, got -1"),
        ({"deadline_s": float("inf")}, "got inf"),
    ],
)
def test_schedules_that_cannot_be(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(NasboError, match=words):
        Schedule(**settings)
