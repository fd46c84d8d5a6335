"""Events to history: states, the best, what the surrogate sees."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from nasbo.errors import JournalError, NasboError
from nasbo.history import (
    CAUSES,
    FORMAT,
    Attempt,
    History,
    Mode,
    config_key,
    event,
    json_safe,
    replay,
)
from nasbo.space import Space, load_space

SPACE = load_space({"x": {"type": "float", "range": [0, 1]}})


def _settings(mode: Mode = "min", space: Space = SPACE) -> dict[str, Any]:
    return event("settings", format=FORMAT, space=space.fingerprint(), mode=mode)


def _history(
    n: int, mode: Mode = "min", endings: dict[int, dict[str, Any]] | None = None
) -> History:
    events = [_settings(mode), event("round", round=0, size=n, unseen=[], seconds=0.1)]
    for number in range(n):
        config = {"x": number / 10}
        events.append(
            event("suggested", trial=number, round=0, source="design", subspace=0, config=config)
        )
    for number, ending in (endings or {}).items():
        events.append(event("started", trial=number))
        kind = "failed" if "cause" in ending else "finished"
        events.append(event(kind, trial=number, **ending))
    return replay(SPACE, mode, events)


def test_states_and_counts() -> None:
    history = _history(4, endings={0: {"value": 2.0}, 2: {"cause": "crashed", "message": "boom"}})
    history.apply(event("started", trial=1))
    assert [t.state for t in history.trials] == ["finished", "running", "failed", "waiting"]
    assert (history.n_suggested, history.n_ended) == (4, 2)
    assert [t.id for t in history.open_trials] == [1, 3]
    assert history.cause_counts() == {"crashed": 1}
    assert history.trials[2].message == "boom"
    assert history.rounds[0].size == 4
    history.apply(event("requeued", trial=1, cause="killed"))
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


def test_first_of_equals_is_best_and_stopped_counts() -> None:
    history = _history(3, endings={2: {"value": 1.0}, 1: {"value": 1.0}})
    assert history.best is not None
    assert history.best.id == 1
    history.apply(event("failed", trial=0, cause="stopped", value=0.5, step=3))
    assert (history.best.id, history.best.value, history.best.step) == (0, 0.5, 3)


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
    history.apply(event("observed", trial=1, config={"x": 0.9}, subspace=0, value=0.0))
    assert (history.n_suggested, history.n_ended) == (1, 0)
    assert history.design_counts() == {0: 2}
    assert [t.id for t in history.suggested] == [0]
    assert history.state_counts() == {"waiting": 1}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (event("finished", trial=0, value=1.0), "trial 0 has ended already"),
        (event("failed", trial=0, cause="lost"), "trial 0 has ended already"),
        (event("started", trial=2), "no trial 2: there are 2"),
        (event("started", trial=-1), "no trial -1"),
        (event("started", trial="0"), "no trial '0'"),
        (event("suggested", trial=5, config={}, subspace=0, source="design", round=0), "number 2"),
        (event("dreamt"), "unknown event 'dreamt'"),
        ({}, "unknown event None"),
        (event("settings", format=99, mode="min"), "format 99"),
        (_settings("max"), "mode 'max', not 'min'"),
        (_settings(space=load_space("svm")), "another search space"),
    ],
)
def test_events_that_cannot_be(bad: dict[str, Any], words: str) -> None:
    history = _history(2, endings={0: {"value": 1.0}})
    with pytest.raises(JournalError, match=words):
        history.apply(bad)
    assert len(history.trials) == 2


def test_mode_is_checked() -> None:
    with pytest.raises(NasboError, match="'min' or 'max', got 'up'"):
        History(SPACE, "up")  # type: ignore[arg-type]


def test_reports_make_a_curve() -> None:
    history = _history(1)
    for step, value in ((1, 0.5), (2, None), (3, 0.7)):
        history.apply(event("reported", trial=0, step=step, value=value, metrics={"loss": step}))
    trial = history.trials[0]
    assert (trial.curve, trial.step, trial.metrics) == ([(1, 0.5), (3, 0.7)], 3, {"loss": 3})
    history.apply(event("budget", trials=9))
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


def _at(time: float, kind: str, **fields: Any) -> dict[str, Any]:
    return {**event(kind, **fields), "time": time}


def _interrupted(*opened: dict[str, Any]) -> History:
    """Two trials run at once; the driver dies at 130, and one an hour later begins them again."""
    history = _history(3)
    for item in (
        _at(100, "started", trial=0),
        _at(110, "started", trial=1),
        _at(130, "reported", trial=0, step=1, value=0.5, metrics={}),
        *opened,
        _at(3701, "started", trial=0),
        _at(3702, "started", trial=1),
        _at(3761, "finished", trial=0, value=1.0),
    ):
        history.apply(item)
    return history


@pytest.mark.parametrize("opened", [[_at(3700, "opened")], []], ids=["opened", "old journal"])
def test_attempts_end_with_their_driver(opened: list[dict[str, Any]]) -> None:
    history = _interrupted(*opened)
    first, second, _ = history.trials
    assert first.attempts == [Attempt(100, 130), Attempt(3701, 3761)]
    assert second.attempts == [Attempt(110, 130), Attempt(3702)]
    assert (first.seconds, second.seconds) == (90, 20)
    assert (first.started_at, first.ended_at) == (100, 3761)
    assert second.spans(3800) == [(110, 130), (3702, 3800)]
    assert history.gaps == [(130, 3700 if opened else 3701)]
    assert history.last_time == 3761


def test_attempts_end_where_a_trial_is_begun_again() -> None:
    history = _history(1)
    for item in (
        _at(10, "started", trial=0),
        _at(15, "requeued", trial=0, cause="oom"),
        _at(50, "started", trial=0),
        _at(57, "failed", trial=0, cause="crashed"),
    ):
        history.apply(item)
    trial = history.trials[0]
    assert trial.attempts == [Attempt(10, 15), Attempt(50, 57)]
    assert (trial.seconds, trial.current, history.gaps) == (12, None, [])


def test_a_trial_that_is_told_later_ran_on() -> None:
    """Ask and tell: the journal was closed in between, but the training was not."""
    history = _history(1)
    for item in (_at(10, "started", trial=0), _at(500, "opened")):
        history.apply(item)
    assert history.trials[0].attempts == [Attempt(10, 10)]
    history.apply(_at(501, "finished", trial=0, value=1.0))
    assert history.trials[0].attempts == [Attempt(10, 501)]
    assert history.gaps == []
    twin = _history(1)
    ending = _at(501, "finished", trial=0, value=1.0, same_as=0)
    for item in (_at(10, "started", trial=0), _at(500, "opened"), ending):
        twin.apply(item)
    assert twin.trials[0].seconds == 0


def test_a_clock_that_goes_back_does_no_harm() -> None:
    history = _history(1)
    history.apply(_at(100, "started", trial=0))
    assert history.trials[0].spans(50) == [(100, 100)]
    history.apply(_at(90, "finished", trial=0, value=1.0))
    assert history.trials[0].seconds == 0
