"""Callbacks: what they are told, in which order, and what becomes of their errors."""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import nasbo
from nasbo.cli import cli
from nasbo.errors import SweepError
from nasbo.search import Search
from nasbo.sweeps.callbacks import Callbacks, callback_classes, load_callbacks
from nasbo.sweeps.settings import Sweep
from nasbo.tune.observers import CallbackThread
from tests.events import failed, finished, reported, started


class Notes(nasbo.Callback):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_start(self, history: Any) -> None:
        self.told.append(("start", history.n_suggested))

    def on_round(self, opened: Any, trials: Any) -> None:
        self.told.append(("round", opened.number, [trial.id for trial in trials]))

    def on_report(self, trial: Any, run: Any, measurement: Any) -> None:
        self.told.append(("report", run.number, measurement.step, measurement.value))

    def on_end(self, trial: Any, run: Any) -> None:
        self.told.append(("end", run.number, run.cause or run.state, run.value))

    def on_stop(self, history: Any) -> None:
        self.told.append(("stop", history.n_ended))


class Broken(nasbo.Callback):
    """Fails in one place."""

    def on_report(self, trial: Any, run: Any, measurement: Any) -> None:
        raise RuntimeError("no network")


class Stranger:
    """No callback."""


def _search() -> Search:
    return Search("svm", method="random", rungs=None)


def test_each_thing_is_told_once_and_in_order() -> None:
    search, notes = _search(), Notes()
    told = Callbacks([("notes", notes)])
    told.mark(search.history)
    told.start(search.history)
    first, second = search.open_round(2)
    at = search.history.last_time
    search.record(started(first.id, time=at + 1), started(second.id, time=at + 1))
    search.record(reported(second.id, 1, 0.5, time=at + 2))
    told(search.history.snapshot())
    told(search.history.snapshot())
    search.record(reported(first.id, 1, 0.4, time=at + 3))
    search.record(finished(first.id, 0.4, time=at + 4), reported(second.id, 2, 0.3, time=at + 5))
    search.record(failed(second.id, "crashed", time=at + 6))
    told.stop(search.history.snapshot())
    assert notes.told == [
        ("start", 0),
        ("round", 0, [0, 1]),
        ("report", 1, 1, 0.5),
        ("report", 0, 1, 0.4),
        ("end", 0, "finished", 0.4),
        ("report", 1, 2, 0.3),
        ("end", 1, "crashed", None),
        ("stop", 2),
    ]


def test_what_was_before_is_in_the_history_alone() -> None:
    search, notes = _search(), Notes()
    (first,) = search.open_round(1)
    search.record(started(first.id), reported(first.id, 1, 0.5), finished(first.id, 0.5))
    told = Callbacks([("notes", notes)])
    told.mark(search.history)
    told.start(search.history)
    told.stop(search.history)
    assert notes.told == [("start", 1), ("stop", 1)]


def test_a_pause_is_told_also_where_the_run_goes_on_at_once() -> None:
    search, notes = Search("svm", method="random", rungs=(2, 6)), Notes()
    told = Callbacks([("notes", notes)])
    (first,) = search.open_round(1)
    told.mark(search.history)
    search.target(first.id, 2)
    search.record(started(first.id), reported(first.id, 2, 0.5))
    search.tell(first, 0.5, error="paused", step=2)
    search.target(first.id, None)
    told(search.history.snapshot())
    search.record(started(first.id), reported(first.id, 6, 0.2), finished(first.id, 0.2, step=6))
    told(search.history.snapshot())
    assert [one for one in notes.told if one[0] == "end"] == [
        ("end", 0, "paused", 0.5),
        ("end", 0, "finished", 0.2),
    ]


def test_errors_are_logged_once_counted_and_stop_nobody(caplog: pytest.LogCaptureFixture) -> None:
    search, notes = _search(), Notes()
    told = Callbacks([("tests:Broken", Broken()), ("notes", notes)])
    (first,) = search.open_round(1)
    told.mark(search.history)
    search.record(started(first.id), reported(first.id, 1, 0.5), reported(first.id, 2, 0.4))
    with caplog.at_level(logging.WARNING):
        told(search.history)
    assert len([one for one in notes.told if one[0] == "report"]) == 2
    assert told.errors == {"tests:Broken": 2}
    assert told.words() == "callbacks: tests:Broken failed 2 times; the log says why"
    assert len(caplog.records) == 1
    assert "tests:Broken failed in on_report, the sweep goes on: no network" in caplog.text


def test_the_thread_tells_the_beginning_and_the_end() -> None:
    search, notes = _search(), Notes()
    with CallbackThread(search.history, Callbacks([("notes", notes)])):
        search.open_round(1)
    assert notes.told == [("start", 0), ("round", 0, [0]), ("stop", 0)]


def test_a_callback_that_hangs_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("nasbo.tune.observers.PATIENCE_S", 0.05)
    free = threading.Event()

    class Hanging(nasbo.Callback):
        def on_start(self, history: Any) -> None:
            free.wait(60)

    search = _search()
    with CallbackThread(search.history, Callbacks([("hanging", Hanging())])):
        search.open_round(1)
    assert "still busy" in caplog.text
    free.set()


def _sweep(*callbacks: str, folder: Path | None = None) -> Sweep:
    return Sweep("svm", "own:train", callbacks=[*callbacks], working_folder=str(folder or ""))


def test_classes_come_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tried_calls.py").write_text("import nasbo\nclass Mine(nasbo.Callback):\n  pass\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    (found,) = callback_classes(_sweep("tried_calls:Mine", folder=tmp_path))
    assert found.__name__ == "Mine"
    with pytest.raises(SweepError, match="lies in the sweep's own folder"):
        load_callbacks(_sweep("tried_calls:Mine", folder=tmp_path), tmp_path)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("no_such_module:Mine", "the callback no_such_module:Mine: ModuleNotFoundError"),
        (f"{__name__}:Nobody", "must be a subclass of nasbo.Callback, got None"),
        (f"{__name__}:Stranger", "must be a subclass of nasbo.Callback, got <class"),
        ("1a:Mine", "must be module:Class, got '1a:Mine'"),
    ],
)
def test_bad_callbacks_are_named(path: str, words: str) -> None:
    with pytest.raises(SweepError, match=words):
        callback_classes(_sweep(path))


def test_a_callback_that_cannot_be_made_ends_the_sweep_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import nasbo\nclass Bad(nasbo.Callback):\n  def __init__(self):\n    1 / 0\n"
    (tmp_path / "bad_calls.py").write_text(text)
    monkeypatch.setattr(sys, "path", [*sys.path])
    words = "bad_calls:Bad cannot be made: bad_calls.py:4: ZeroDivisionError"
    with pytest.raises(SweepError, match=words):
        load_callbacks(_sweep("bad_calls:Bad", folder=tmp_path), tmp_path / "sweep")


def test_the_setting_is_a_list_of_paths() -> None:
    with pytest.raises(SweepError, match=r"callbacks must be a list of module:Class, got \['x'\]"):
        _sweep("x")


def test_a_run_with_a_bad_callback_begins_nothing(tmp_path: Path) -> None:
    words = ["run", "simulation", "--trainer", "tests.tune.toy:simulation", "--dir"]
    words += [str(tmp_path / "s"), "--callback", "no_such_module:Mine"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 2
    assert "the callback no_such_module:Mine: ModuleNotFoundError" in result.output
    assert not (tmp_path / "s").exists()
