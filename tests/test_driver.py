"""Driver: what starts next, what waits, and the effects of reports and endings."""

from __future__ import annotations

from typing import Any

import pytest

from nasbo.errors import NasboError
from nasbo.history import Ending, Run
from nasbo.search import Decided, Driver, Next, Policies, Schedule, Search, Verdict
from nasbo.search.retries import RetryPolicy


def driver(budget: int | None = 10, policies: Policies | None = None, **schedule: Any) -> Driver:
    search = Search("svm", method="random")
    return Driver(search, Schedule(budget=budget, **schedule), policies=policies)


def start(one: Driver, slots: int | None = 2) -> Run:
    run = one.next(slots)
    assert isinstance(run, Run)
    return run


def test_slots_are_filled_and_then_there_is_nothing_to_start() -> None:
    one = driver()
    first, second = start(one), start(one)
    assert one.next(2) is Next.WAIT
    assert one.running == {first.number, second.number}
    assert [run.state for run in one.search.history.open_runs][:2] == ["running"] * 2
    one.on_end(first.number, 1.0)
    assert start(one).number == 2
    assert isinstance(one.next(None), Run), "nobody says how many there may be"


def test_all_of_the_budget_ends_and_then_it_is_done() -> None:
    one, numbers = driver(budget=10), []
    while isinstance(run := one.next(1), Run):
        numbers.append(run.number)
        assert not one.on_end(run.number, float(run.number))
    assert run is Next.DONE
    assert numbers == list(range(10))
    assert one.search.history.n_ended == 10
    assert [r.size for r in one.search.history.rounds] == [8, 2]


def test_what_has_not_ended_is_waited_for() -> None:
    one = driver(budget=8)
    runs = [start(one, 8) for _ in range(8)]
    assert one.next(8) is Next.WAIT
    for run in runs[1:]:
        one.on_end(run.number, 1.0)
    assert one.next(8) is Next.WAIT
    one.on_end(runs[0].number, 1.0)
    assert one.next(8) is Next.DONE


def test_reports_are_noted_and_the_run_goes_on() -> None:
    one = driver()
    run = start(one)
    assert one.on_report(run.number, 1, 0.5, {"loss": 0.5}) is Verdict.GO_ON
    assert one.search.history.run(run.number).curve == [(1, 0.5)]


def test_a_run_that_may_be_begun_again_comes_first() -> None:
    ended: list[int] = []
    policies = Policies(retry=RetryPolicy(1), ended=[lambda run: ended.append(run.number)])
    one = driver(policies=policies)
    first = start(one)
    assert one.on_end(first.number, error="killed", message="gone")
    assert ended == []
    again = start(one)
    assert (again.number, dict(again.retries), len(again.attempts)) == (0, {"killed": 1}, 1)
    assert not one.on_end(again.number, error="killed", message="gone again")
    assert ended == [0]
    assert one.search.history.run(0).ending is Ending.KILLED
    assert one.search.history.run(0).message == "gone again"


def test_what_is_left_open_is_not_running() -> None:
    one = driver()
    run = start(one)
    one.leave_open(run.number)
    assert one.running == set()
    assert one.search.history.run(run.number).is_open


def test_unknown_endings_are_refused() -> None:
    one = driver()
    with pytest.raises(NasboError, match="must be one of"):
        one.on_end(start(one).number, error="tired")


class Slow:
    """A decider that is ready when the test says so."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.ready: Decided | None = None
        self.is_busy = False

    def begin(self, search: Search, n: int) -> None:
        self.asked.append(n)
        self.is_busy, self._decided = True, search.decide(n)

    def fetch(self, is_idle: bool) -> Decided | None:
        if self.ready is None:
            return None
        self.is_busy, self.ready = False, None
        return self._decided


def test_a_method_that_takes_its_time_is_asked_once() -> None:
    slow = Slow()
    one = Driver(Search("svm", method="random"), Schedule(budget=8), slow)
    for _ in range(3):
        assert one.next(2) is Next.WAIT
        assert one.is_deciding
    assert slow.asked == [8]
    slow.ready = ([], 0.0)
    assert start(one).number == 0
    assert not one.is_deciding


def test_curves_reach_whoever_decides() -> None:
    """The events that are sent to a method in another process contain the measurements."""
    one = driver()
    run = start(one)
    one.on_report(run.number, 3, 0.25, {"loss": 0.25})
    again = Search("svm", method="random", past=one.search.events)
    assert again.history.run(run.number).curve == [(3, 0.25)]
