"""Prometheus metrics of a sweep: agreement with its history, and few labels."""

from __future__ import annotations

import numpy as np
import pytest

from nasbo.history import CAUSES
from nasbo.methods import Suggestion
from nasbo.search import Search
from nasbo.space import Space
from nasbo.sweeps.settings import Sweep
from nasbo.tune.metrics import (
    DESCRIPTIONS,
    MAX_SUBSPACES,
    OTHER,
    PERIOD_S,
    SubspaceLabels,
    SweepMetrics,
    sweep_labels,
)
from tests.events import finished, requeued, started
from tests.rung_search import drive, make

SWEEP = Sweep("some/where/svm.yaml", "own:train", trials=9, metric="accuracy", mode="max")


def _measured(search: Search, slots: int = 4) -> dict[str, dict[str, float]]:
    """Value by labels, by metric."""
    found: dict[str, dict[str, float]] = {}
    metrics = SweepMetrics("first", SWEEP, lambda: slots)
    for name, value, labels in metrics.samples(search.history):
        assert set(labels) == set(DESCRIPTIONS[name][1]), name
        key = ",".join(labels.values())
        assert key not in found.setdefault(name, {}), f"{name}{labels} is set twice"
        found[name][key] = value
    return found


FRONTS = {"nasbo_hypervolume", "nasbo_front_trials"}
"""Metrics of several objectives: see ``tests/report/test_fronts.py``."""


def _told() -> Search:
    search = Search("svm", method="random", mode="max")
    subspaces = [search.space.subspace(index) for index in (0, 0, 1, 2)]
    drawn = [Suggestion(s.decode([0.5] * s.n_free), "design") for s in subspaces[:1]]
    drawn += [
        Suggestion(s.decode([0.1 * index] * s.n_free), "model", {"fit_s": 0.25})
        for index, s in enumerate(subspaces[1:], start=1)
    ]
    trials = search.add_round(drawn, 1.5)
    for trial in trials[:3]:
        search.start(trial)
    search.tell(trials[0], 0.7)
    search.requeue(trials[1], "oom")
    search.start(trials[1])
    search.tell(trials[1], 0.9)
    search.tell(trials[2], error="crashed")
    search.start(trials[3])
    return search


def test_a_search_in_numbers() -> None:
    search = _told()
    found = _measured(search)
    assert set(found) == set(DESCRIPTIONS) - FRONTS - {"nasbo_rung_trials"}, "there are no rungs"
    assert (found["nasbo_spent"], found["nasbo_epochs"]) == ({"": 3}, {"": 0})
    assert found["nasbo_best_value"] == {"": 0.9}
    states = {"waiting": 0, "running": 1, "paused": 0, "finished": 2, "failed": 1}
    assert found["nasbo_trials"] == states
    assert found["nasbo_budget"] == {"": 9}
    assert found["nasbo_round"] == {"": 0}
    assert found["nasbo_suggest_seconds"] == {"": 1.5}
    assert found["nasbo_fit_seconds"] == {"": 0.25}
    assert found["nasbo_worker_busy_ratio"] == {"": 0.25}
    assert found["nasbo_failures"] == {cause: float(cause == "crashed") for cause in CAUSES}
    assert found["nasbo_retries"]["oom"] == 1
    names = [search.space.subspace(index).id for index in range(3)]
    assert found["nasbo_subspace_trials"] == dict(zip(names, (2, 1, 1), strict=True))
    assert found["nasbo_subspace_best"] == {names[0]: 0.9}
    assert found["nasbo_sweep"] == {"attnbo,svm,accuracy,max": 1}


def test_time_of_a_trial_is_that_of_its_attempts() -> None:
    search = Search("svm", method="random", mode="max")
    (trial,) = search.open_round(1)
    search.record(
        started(trial.id, time=10.0),
        requeued(trial.id, "lost", time=20.0),
        started(trial.id, time=3600.0),
        finished(trial.id, 0.5, time=3632.0),
    )
    assert _measured(search)["nasbo_trial_seconds"] == {"": 42.0}


def test_a_search_without_results_and_a_cluster_without_nodes() -> None:
    found = _measured(Search("svm", method="random", mode="max"), slots=0)
    assert "nasbo_best_value" not in found
    assert found["nasbo_worker_busy_ratio"] == {"": 0.0}
    assert sum(found["nasbo_trials"].values()) == 0


def test_labels_of_many_subspaces_are_few_and_do_not_change(thousands_space: Space) -> None:
    search = Search(thousands_space, method="random")
    rng, labels = np.random.default_rng(0), SubspaceLabels()
    trials = search.add_round([Suggestion(thousands_space.sample(rng)) for _ in range(60)], 0.0)
    first = [labels(search.history, trial) for trial in trials]
    assert {label.partition("=")[0] for label in first} == {"n"}
    assert [labels(search.history, trial) for trial in trials] == first


def test_what_is_beyond_the_labels_is_other() -> None:
    wide = {"n": {"type": "int", "range": [0, 50], "submodule": {}}}
    wide["n"]["submodule"] = {
        value: {"x": {"type": "float", "range": [0, 1]}} for value in range(50)
    }
    search = Search(wide, method="random")
    configs = [search.space.subspace(index).decode([0.5]) for index in range(40)]
    trials = search.add_round([Suggestion(config) for config in configs], 0.0)
    labels = SubspaceLabels()
    found = [labels(search.history, trial) for trial in trials]
    assert len(set(found)) == MAX_SUBSPACES + 1
    assert found[MAX_SUBSPACES:] == [OTHER] * (40 - MAX_SUBSPACES)


def test_gauges_are_set_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now, n_looks = 100.0, 0

    def slots() -> int:
        nonlocal n_looks
        n_looks += 1
        return 4

    monkeypatch.setattr("nasbo.tune.metrics.time.monotonic", lambda: now)
    metrics, history = SweepMetrics("first", SWEEP, slots), _told().history
    for step in (0.0, PERIOD_S / 2, PERIOD_S / 2):
        now += step
        metrics(history, "")
    assert n_looks == 2


def test_labels_of_a_sweep_hold_no_path() -> None:
    assert sweep_labels(SWEEP)["space"] == "svm"
    assert sweep_labels(Sweep("cash", "own:train"))["metric"] == "value"


def test_rungs_in_numbers() -> None:
    one = make(8)
    drive(one, 10)
    found = _measured(one.search)
    assert "nasbo_best_value" not in found, "none is trained in full"
    assert "nasbo_best_expected" not in found
    drive(one)
    history, found = one.search.history, _measured(one.search)
    assert set(found) == set(DESCRIPTIONS) - FRONTS
    assert found["nasbo_spent"] == {"": history.spent}
    assert found["nasbo_epochs"] == {"": sum(trial.step for trial in history.trials)}
    trials = found["nasbo_rung_trials"]
    assert trials["18,finished"] == history.state_counts()["finished"] > 0
    assert trials["2,paused"] + trials["6,paused"] == history.state_counts()["paused"]
    assert trials["2,promoted"] == trials["6,promoted"] + trials["6,paused"]
    assert trials["6,promoted"] == trials["18,finished"]
    assert found["nasbo_best_value"] == {"": history.best.value if history.best else None}
