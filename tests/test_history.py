"""History from events: states, the best, and the data of the surrogate."""

from __future__ import annotations

import json
import math
import pickle
import threading
from typing import Any

import numpy as np
import pytest
import torch

from nasbo.errors import JournalError, NasboError
from nasbo.history import CAUSES, Attempt, History, Mode, config_key, json_safe
from nasbo.history.events import (
    Budget,
    Decoder,
    Event,
    Observed,
    Opened,
    RoundOpened,
    Settings,
    Suggested,
    from_json,
)
from nasbo.space import Space, load_space
from tests.events import failed, finished, reported, requeued, started

SPACE = load_space({"x": {"type": "float", "range": [0, 1]}})


def _settings(mode: Mode = "min", space: Space = SPACE) -> Settings:
    objectives = ({"metric": "value", "mode": mode},)
    return Settings(space=space.fingerprint(), method="random", objectives=objectives, seed=0)


def _history(
    n: int, mode: Mode = "min", endings: dict[int, dict[str, Any]] | None = None
) -> History:
    events: list[Event] = [_settings(mode), RoundOpened(round=0, size=n, seconds=0.1)]
    for number in range(n):
        config = {"x": number / 10}
        events.append(Suggested(trial=number, round=0, source="design", subspace=0, config=config))
    for number, ending in (endings or {}).items():
        events.append(started(number))
        events.append((failed if "cause" in ending else finished)(number, **ending))
    history = History(SPACE, mode)
    for item in events:
        history.apply(item)
    return history


def test_states_and_counts() -> None:
    history = _history(4, endings={0: {"value": 2.0}, 2: {"cause": "crashed", "message": "boom"}})
    history.apply(started(1))
    assert [t.state for t in history.trials] == ["finished", "running", "failed", "waiting"]
    assert (history.n_suggested, history.n_ended) == (4, 2)
    assert [run.number for run in history.open_runs] == [1, 3]
    assert history.cause_counts() == {"crashed": 1}
    assert history.trials[2].message == "boom"
    assert history.rounds[0].size == 4
    history.apply(requeued(1, "killed"))
    assert history.trials[1].state == "waiting"
    assert len(history.trials[1].attempts) == 1


@pytest.mark.parametrize(("mode", "best"), [("min", 2), ("max", 0)])
def test_best_follows_the_mode(mode: Mode, best: int) -> None:
    endings: dict[int, dict[str, Any]] = {
        0: {"value": 5.0},
        1: {"value": 3.0},
        2: {"value": 1.0},
        3: {"cause": "lost"},
    }
    history = _history(5, mode, endings)
    assert history.best is not None
    assert history.best.id == best


def test_first_of_equals_is_best_and_stopped_does_not_count() -> None:
    history = _history(3, endings={2: {"value": 1.0}, 1: {"value": 1.0}})
    assert history.best is not None
    assert history.best.id == 1
    history.apply(failed(0, "stopped", value=0.5, step=3))
    assert history.best.id == 1, "what was stopped at step 3 is no full result"
    assert (history.trials[0].value, history.trials[0].first.value) == (None, 0.5)


def test_what_was_stopped_at_the_last_step_is_a_full_result() -> None:
    """Schedulers also stop trials that have reached their last step."""
    history = _history(3)
    history.apply(failed(0, "stopped", value=0.5, step=3))
    assert history.best is not None
    assert history.best.value == 0.5
    history.apply(reported(1, 4, 0.9))
    assert history.best is not None
    assert history.best.value is None, "another one goes further"
    assert history.best.partial == (3, 0.5)
    history.apply(failed(1, "stopped", value=0.8, step=5))
    assert [(trial.id, score) for trial, score in history.rows()] == [(0, -0.5), (1, -0.8)]
    assert history.best is not None
    assert history.best.id == 1


def test_best_so_far_follows_the_ends() -> None:
    endings: list[tuple[int, dict[str, Any]]] = [
        (3, {"cause": "oom"}),
        (2, {"value": 1.0}),
        (0, {"value": 0.0}),
        (1, {"value": 2.0}),
    ]
    timed = {number: {**ending, "time": at} for at, (number, ending) in enumerate(endings)}
    curve = _history(5, "max", timed).best_so_far()
    assert math.isnan(curve[0])
    assert curve[1:] == [1.0, 1.0, 2.0]


def test_rows_rule_of_endings() -> None:
    endings: dict[int, dict[str, Any]] = {0: {"value": 1.0}, 1: {"value": 7.0}}
    endings |= {2 + at: {"cause": cause, "value": 3.0} for at, cause in enumerate(CAUSES)}
    history = _history(2 + len(CAUSES) + 1, "min", endings)
    rows = {(trial.cause or "finished", trial.id): score for trial, score in history.rows()}
    assert rows == {
        ("finished", 0): -1.0,
        ("finished", 1): -7.0,
        ("diverged", 2): -7.0,
        ("invalid", 3): -7.0,
        ("stopped", 2 + CAUSES.index("stopped")): -3.0,
    }
    assert [trial.id for trial, _ in history.rows()] == sorted(t.id for t, _ in history.rows())


def test_rows_need_a_value() -> None:
    assert _history(3, endings={0: {"cause": "diverged"}, 1: {"cause": "invalid"}}).rows() == []
    assert _history(1, endings={0: {"cause": "stopped", "value": None}}).rows() == []


def test_observed_results_are_apart_from_the_budget() -> None:
    history = _history(1)
    history.apply(Observed(trial=1, config={"x": 0.9}, subspace=0, value=0.0))
    assert (history.n_suggested, history.n_ended) == (1, 0)
    assert history.design_counts() == {0: 2}
    assert [t.id for t in history.suggested] == [0]
    assert history.state_counts() == {"waiting": 1}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (finished(0, 1.0), "run 0 has ended already"),
        (failed(0, "lost"), "run 0 has ended already"),
        (started(2), "no trial 2: there are 2"),
        (started(-1), "no trial -1"),
        (started("0"), "no trial '0'"),  # type: ignore[arg-type]
        (Suggested(trial=5, config={}, subspace=0, source="design", round=0), "number 2"),
        (_settings("max"), "mode 'max', not 'min'"),
        (_settings(space=load_space("svm")), "another search space"),
    ],
)
def test_events_that_cannot_be(bad: Event, words: str) -> None:
    history = _history(2, endings={0: {"value": 1.0}})
    with pytest.raises(JournalError, match=words):
        history.apply(bad)
    assert len(history.trials) == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"event": "dreamt"}, "unknown event 'dreamt'"),
        ({}, "unknown event None"),
        ({"event": "settings", "format": 99, "mode": "min"}, "format 99"),
        ({"event": "started"}, "'started' cannot be read: .*'run'"),
        ({"event": "ended", "run": 0, "ending": "eaten"}, "cannot be read: .*got 'eaten'"),
    ],
)
def test_lines_that_cannot_be(line: dict[str, Any], words: str) -> None:
    with pytest.raises(JournalError, match=words):
        Decoder()(line)


@pytest.mark.parametrize(
    "event",
    [
        _settings(),
        Opened(),
        RoundOpened(round=1, size=2, unseen=(0, 1), seconds=0.5, set_aside=("x >= 1",)),
        requeued(3, "oom", message="too large"),
        reported(3, 2, None, metrics={"loss": None}),
        failed(3, "no result", step=4),
        finished(3, 0.5, twin=1, metrics={"a": 1}),
    ],
)
def test_events_come_back_from_json(event: Event) -> None:
    line = json.loads(json.dumps(event.to_json()))
    assert from_json(line) == event
    assert Decoder()(line) == event


def test_histories_can_be_sent_to_other_processes() -> None:
    history = _history(3, endings={0: {"value": 1.0}})
    again = pickle.loads(pickle.dumps(history))
    again.apply(started(1))
    assert [trial.state for trial in again.trials] == ["finished", "running", "waiting"]
    assert [trial.state for trial in history.trials] == ["finished", "waiting", "waiting"]


def test_snapshots_do_not_change() -> None:
    history = _history(3, endings={0: {"value": 1.0}})
    before = history.snapshot()
    history.apply(started(1))
    history.apply(finished(1, 0.5))
    assert [trial.state for trial in before.trials] == ["finished", "waiting", "waiting"]
    assert (before.best, before.n_ended) == (before.trials[0], 1)
    assert history.best is history.trials[1]
    assert before.run(2).is_open


def test_a_snapshot_can_be_taken_while_events_come_in() -> None:
    """Displays read from their own thread, since Tune occupies the main thread."""
    history, errors, is_done = _history(400), list[BaseException](), threading.Event()

    def look() -> None:
        while not is_done.is_set():
            try:
                view = history.snapshot()
                assert len(view.open_runs) + view.n_ended == 400
                assert view.state_counts().total() == 400
            except BaseException as error:
                errors.append(error)

    thread = threading.Thread(target=look)
    thread.start()
    for number in range(400):
        history.apply(started(number))
        history.apply(finished(number, float(number)))
    is_done.set()
    thread.join()
    assert not errors


def test_mode_is_checked() -> None:
    with pytest.raises(NasboError, match="'min' or 'max', got 'up'"):
        History(SPACE, "up")  # type: ignore[arg-type]


def test_reports_make_a_curve() -> None:
    history = _history(1)
    for step, value in ((1, 0.5), (2, None), (3, 0.7)):
        history.apply(reported(0, step, value, metrics={"loss": step}))
    trial = history.trials[0]
    assert (trial.curve, trial.step, trial.metrics) == ([(1, 0.5), (3, 0.7)], 3, {"loss": 3})
    history.apply(Budget(trials=9))
    assert history.budget == 9


def test_keys_do_not_depend_on_order() -> None:
    assert config_key({"a": 1, "b": [None, 2]}) == config_key({"b": [None, 2], "a": 1})
    assert len({config_key({"a": value}) for value in (1, 1.5, "1", True, None)}) == 5


def test_metrics_become_plain() -> None:
    metrics = {
        "numpy": np.float32(0.5),
        "integer": np.int64(3),
        "torch": torch.tensor(2.0),
        "flag": np.bool_(True),
        "nan": float("nan"),
        "list": (1, float("inf")),
        3: {"inner": None},
        "odd": object,
    }
    safe = json_safe(metrics)
    assert safe.pop("odd") == str(object)
    assert safe == {
        "numpy": 0.5,
        "integer": 3,
        "torch": 2.0,
        "flag": True,
        "nan": None,
        "list": [1, None],
        "3": {"inner": None},
    }


def test_copies_do_not_touch_the_history() -> None:
    history = _history(1)
    copy = history.trials[0].copy()
    copy.config["x"] = 99
    assert history.trials[0].config == {"x": 0.0}
    assert history.subspace(copy).index == 0


def _interrupted(*opened: Event) -> History:
    """Two trials run at once; the driver dies at 130, and one an hour later restarts them."""
    history = _history(3)
    for item in (
        started(0, time=100),
        started(1, time=110),
        reported(0, 1, 0.5, time=130),
        *opened,
        started(0, time=3701),
        started(1, time=3702),
        finished(0, 1.0, time=3761),
    ):
        history.apply(item)
    return history


@pytest.mark.parametrize("opened", [[Opened(time=3700)], []], ids=["opened", "old journal"])
def test_attempts_end_with_their_driver(opened: list[Event]) -> None:
    history = _interrupted(*opened)
    first, second, _ = history.trials
    assert first.attempts == (Attempt(100, 130), Attempt(3701, 3761))
    assert second.attempts == (Attempt(110, 130), Attempt(3702))
    assert (first.seconds, second.seconds) == (90, 20)
    assert (first.started_at, first.ended_at) == (100, 3761)
    assert second.first.spans(3800) == [(110, 130), (3702, 3800)]
    assert history.gaps == [(130, 3700 if opened else 3701)]
    assert history.last_time == 3761


def test_attempts_end_where_a_trial_is_begun_again() -> None:
    history = _history(1)
    for item in (
        started(0, time=10),
        requeued(0, "oom", time=15),
        started(0, time=50),
        failed(0, "crashed", time=57),
    ):
        history.apply(item)
    trial = history.trials[0]
    assert trial.attempts == (Attempt(10, 15), Attempt(50, 57))
    assert (trial.seconds, trial.first.current, history.gaps) == (12, None, [])


def test_a_trial_that_is_told_later_ran_on() -> None:
    """Ask and tell: the journal was closed in between, but the training continued."""
    history = _history(1)
    for item in (started(0, time=10), Opened(time=500)):
        history.apply(item)
    assert history.trials[0].attempts == (Attempt(10, 10),)
    history.apply(finished(0, 1.0, time=501))
    assert history.trials[0].attempts == (Attempt(10, 501),)
    assert history.gaps == []
    twin = _history(1)
    ending = finished(0, 1.0, twin=0, time=501)
    for item in (started(0, time=10), Opened(time=500), ending):
        twin.apply(item)
    assert twin.trials[0].seconds == 0


def test_a_clock_that_goes_back_does_no_harm() -> None:
    history = _history(1)
    history.apply(started(0, time=100))
    assert history.trials[0].first.spans(50) == [(100, 100)]
    history.apply(finished(0, 1.0, time=90))
    assert history.trials[0].seconds == 0
