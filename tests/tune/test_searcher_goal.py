"""Metric and mode of a searcher: from its arguments, from Tune, from a saved search, or missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ray.tune.search import Searcher

from nasbo.errors import NasboError
from nasbo.history import History
from nasbo.tune import NasboSearch
from nasbo.tune.results import finite_number

SPACE = {"x": {"type": "float", "range": [0, 1]}}
POINTS = [{"x": 0.25}, {"x": 0.5}]


def searcher(*arguments: Any, **settings: Any) -> NasboSearch:
    return NasboSearch(SPACE, *arguments, method="random", **settings)


def values(history: History) -> list[float | None]:
    return [trial.value for trial in history.trials]


def run_one(found: NasboSearch, result: dict[str, Any], name: str = "a") -> Any:
    """Run one trial that ends with a result; returns its config."""
    config = found.suggest(name)
    result = {"training_iteration": 1, **result}
    if isinstance(config, dict):
        found.on_trial_result(name, result)
        found.on_trial_complete(name, result)
    return config


def test_results_without_a_metric_are_an_error_that_ends_the_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = searcher()
    assert isinstance(run_one(found, {"accuracy": 0.5}), dict)
    assert "metric must be given: NasboSearch(space, metric=..., mode=...), one of accuracy" in (
        caplog.text
    )
    assert [t.cause for t in found.search.history.trials if not t.is_open] == ["no result"]
    assert found.suggest("b") == Searcher.FINISHED


def test_what_a_trainable_returns_needs_no_metric(caplog: pytest.LogCaptureFixture) -> None:
    found = searcher()
    run_one(found, {})
    run_one(found, {"_metric": 0.5, "epochs": 3}, "b")
    assert isinstance(found.suggest("c"), dict)
    assert values(found.search.history)[:2] == [None, 0.5]
    assert "metric must be given" not in caplog.text


def test_a_mode_from_the_tuner_keeps_what_is_known() -> None:
    found = searcher(None, None, POINTS, [1.0, 2.0])
    found.add_evaluated_point({"x": 0.75}, 3.0)
    assert found.set_search_properties("accuracy", "max", {"fixed": 5})
    history = found.search.history
    assert (history.mode, values(history)) == ("max", [1.0, 2.0, 3.0])
    assert history.best is not None
    assert history.best.value == 3.0


def test_points_to_run_first_are_queued_once() -> None:
    found = searcher(None, None, POINTS)
    found.set_search_properties("accuracy", "max", {"fixed": 5})
    assert [found.suggest(name) for name in "ab"] == POINTS
    assert len(found.search.history.trials) == 2


def saved(found: NasboSearch, tmp_path: Path) -> str:
    file = str(tmp_path / "state.json")
    found.save(file)
    return file


def test_a_restored_history_survives_the_mode_of_the_tuner(tmp_path: Path) -> None:
    first = searcher(None, None, POINTS)
    run_one(first, {"_metric": 0.5})
    first.suggest("running")
    other = searcher()
    other.restore(saved(first, tmp_path))
    other.set_search_properties(None, "max", {"fixed": 5})
    assert other.search.history.mode == "max"
    assert values(other.search.history) == [0.5, None]
    other.on_trial_complete("running", {"training_iteration": 0, "_metric": 0.7})
    assert values(other.search.history) == [0.5, 0.7]


def test_metric_and_mode_are_saved(tmp_path: Path) -> None:
    first = searcher("accuracy", "max", POINTS, [1.0, 2.0])
    file = saved(first, tmp_path)
    other = searcher()
    other.restore(file)
    assert (other.metric, other.mode, other.search.history.mode) == ("accuracy", "max", "max")
    assert values(other.search.history) == [1.0, 2.0]
    with pytest.raises(NasboError, match="the saved search has the mode 'max', not 'min'"):
        searcher("accuracy", "min").restore(file)
    with pytest.raises(NasboError, match="has the metric 'accuracy', not 'loss'"):
        searcher("loss", "max").restore(file)


def test_searches_saved_without_them_are_read(tmp_path: Path) -> None:
    file = saved(searcher("accuracy", "max", POINTS, [1.0, 2.0]), tmp_path)
    state = json.loads(Path(file).read_text())
    del state["metric"], state["mode"]
    Path(file).write_text(json.dumps(state))
    other = searcher()
    other.restore(file)
    assert (other.metric, other.mode) == (None, "max")
    with pytest.raises(NasboError, match="mode 'max', not 'min'"):
        searcher("accuracy", "min").restore(file)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"batch": 0}, "batch must be an integer >= 1, got 0"),
        ({"share": "a"}, "0 < share <= 1 must hold, but got 'a'"),
        ({"deadline_s": -1}, "deadline_s must be seconds above 0, got -1"),
        ({"method_options": {"seed": 3}}, "'random' has no option 'seed'"),
    ],
)
def test_arguments_are_checked_at_the_door(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(NasboError, match=words):
        searcher("loss", "min", **settings)


def test_numbers_too_large_for_a_float_end_a_trial() -> None:
    found = searcher("loss", "min")
    run_one(found, {"loss": 10**400})
    trial = found.search.history.trials[0]
    assert (trial.state, trial.cause) == ("failed", "diverged")
    assert finite_number(10**400) is None
    assert finite_number("1.5") == 1.5
