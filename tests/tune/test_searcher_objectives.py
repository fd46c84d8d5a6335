"""Searcher in a user's own Tuner with several objectives, called as Tune calls it, without Ray."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nasbo.errors import NasboError
from nasbo.tune import NasboSearch
from tests.fronts import SPACE, accuracy, sizes


def searcher(**given: Any) -> NasboSearch:
    goal: dict[str, Any] = {"metric": ["acc", "params"], "mode": ["max", "min"], "features": sizes}
    return NasboSearch(SPACE, method="random", **{**goal, **given})


def run(search: NasboSearch, n: int, start: int = 0) -> None:
    for number in range(start, start + n):
        config = search.suggest(str(number))
        complete(search, str(number), {"acc": accuracy(config)})


def complete(search: NasboSearch, name: str, result: dict[str, float]) -> None:
    search.on_trial_result(name, {**result, "training_iteration": 1})
    search.on_trial_complete(name, {**result, "training_iteration": 1})


def test_lists_are_objectives_as_in_optunas_searcher(tmp_path: Path) -> None:
    search = searcher()
    run(search, 12)
    front = search.search.front
    assert len(front) > 1
    assert all(one.metrics["params"] == sizes(one.config)["params"] for one in front)
    assert (search.metric, search.mode) == ("acc", "max")
    search.save(str(tmp_path / "state"))
    other = searcher()
    other.restore(str(tmp_path / "state"))
    assert [one.id for one in other.search.front] == [one.id for one in front]
    run(other, 1, start=12)
    assert len(other.search.trials) == 13
    with pytest.raises(NasboError, match="the saved search has 2 objectives: acc max, params min"):
        NasboSearch(SPACE, method="random").restore(str(tmp_path / "state"))
    with pytest.raises(
        NasboError, match=r"params min were known before .*: give the same features"
    ):
        searcher(features=None).restore(str(tmp_path / "state"))


def test_a_result_without_a_trained_objective_is_no_result() -> None:
    search = searcher(metric=["acc", "energy"], mode=["max", "min"], features=None)
    for name, result in (("a", {"acc": 0.5, "energy": 1.0}), ("b", {"acc": 0.6})):
        search.suggest(name)
        complete(search, name, result)
    assert [trial.cause for trial in search.search.trials[:2]] == [None, "no result"]


@pytest.mark.parametrize(
    "given", [{"mode": "max"}, {"mode": ["max"]}, {"metric": "acc", "mode": ["max", "min"]}]
)
def test_lists_must_be_of_one_length(given: dict[str, Any]) -> None:
    with pytest.raises(NasboError, match="metric and mode must be lists of one length"):
        searcher(**given)


def test_values_from_elsewhere_may_have_names() -> None:
    points = [{"depth": 1, "width": 8, "rate": 0.01}]
    search = searcher(points_to_evaluate=points, evaluated_rewards=[{"acc": 0.3}])
    assert search.search.trials[0].metrics["params"] == 64
