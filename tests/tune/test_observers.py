"""Observers of a search: called in time, and harmless when they raise."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from nasbo.history import History
from nasbo.search import Search
from nasbo.tune.observers import ObserverThread


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nasbo.tune.observers.PERIOD_S", 0.005)


class Look:
    """Counts its calls; raises at all of them, or at one."""

    def __init__(self, breaks_at: range = range(0)) -> None:
        self.notes: list[str] = []
        self.breaks_at = breaks_at
        self.came = threading.Event()

    def __call__(self, history: History, note: str) -> None:
        self.notes.append(note)
        if len(self.notes) >= 5:
            self.came.set()
        if len(self.notes) in self.breaks_at:
            raise RuntimeError("the terminal is gone")


def _watch(*looks: Look, note: object = lambda: "deciding") -> None:
    history = Search("svm", method="random").history
    with ObserverThread(history, note, looks):  # type: ignore[arg-type]
        for look in looks:
            assert look.came.wait(10), "an observer is no longer called"


def test_they_see_notes_and_the_end() -> None:
    look = Look()
    _watch(look)
    assert set(look.notes[:-1]) == {"deciding"}
    assert look.notes[-1] == ""


def test_one_that_breaks_is_told_of_once_and_called_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken, other = Look(range(2, 1000)), Look()
    with caplog.at_level(logging.WARNING):
        _watch(broken, other)
    assert len(caplog.records) == 1
    assert "the sweep goes on: the terminal is gone" in caplog.text
    assert "Traceback" in caplog.text
    assert len(other.notes) >= 5


def test_looks_that_cost_much_become_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    class Clock(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            return len(waits) > 2

    def think(history: History, note: str) -> None:
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass

    monkeypatch.setattr("nasbo.tune.observers.threading.Event", Clock)
    history = Search("svm", method="random").history
    observers = ObserverThread(history, lambda: "", (think,))
    observers._loop()
    assert waits[0] == 0.005
    assert all(0.5 <= wait < 2 for wait in waits[1:])


def test_a_note_that_breaks_leaves_the_others_alone(caplog: pytest.LogCaptureFixture) -> None:
    def note() -> str:
        raise ConnectionError("Ray is gone")

    look = Look()
    _watch(look, note=note)
    assert set(look.notes) == {""}
    assert len(caplog.records) == 1
