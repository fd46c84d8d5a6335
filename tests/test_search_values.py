"""Arguments and results of ask, tell and observe: numbers, counts, copies, predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nasbo.errors import JournalError, NasboError
from nasbo.history import Mode, replay
from nasbo.methods import Suggestion
from nasbo.search import Search


def _search(space: Any = "svm", **settings: Any) -> Search:
    return Search(space, **{"method": "random", **settings})


@pytest.mark.parametrize("value", ["0.3", b"1", True, [0.3], {"loss": 0.3}])
def test_values_must_be_numbers(value: Any) -> None:
    search = Search("svm", "random")
    (trial,) = search.ask(1)
    with pytest.raises(NasboError, match="a value must be a number, got"):
        search.tell(trial, value)
    with pytest.raises(NasboError, match="a value must be a number, got"):
        search.observe(search.space.sample(np.random.default_rng(0)), value)
    search.tell(trial, np.float32(0.5))
    assert search.best.value == 0.5


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("name", ["attnbo", "gp"])
def test_predictions_are_in_units_of_the_metric(name: str, mode: Mode, tmp_path: Path) -> None:
    space = {"x": {"type": "float", "range": [0, 1]}}
    sign = 1.0 if mode == "min" else -1.0
    journal = tmp_path / "journal.jsonl"
    with Search(space, name, mode, journal=journal) as search:
        for _ in range(6):
            (trial,) = search.ask(1)
            search.tell(trial, 9.0 + sign * (trial.config["x"] - 0.4) ** 2)
        info = search.trials[-1].info
    assert info["predicted"] == pytest.approx(9.0, abs=0.5)
    assert info["predicted_low"] <= info["predicted"] <= info["predicted_high"]
    with Search(space, name, mode, journal=journal) as again:
        assert again.trials[-1].info == info


def test_journals_with_predictions_as_scores_are_read_as_values() -> None:
    info = {"predicted": -9.0, "predicted_low": -9.5, "predicted_high": -8.0}
    config = {"x": 0.5}
    with Search({"x": {"type": "float", "range": [0, 1]}}, "random") as search:
        search.add_round([Suggestion(config, "model", info)], 0.0)
    assert search.trials[0].info == info
    space = search.space.fingerprint()
    plain = {"method": "random", "seed": 0, "options": {}, "time": 1.0}
    lines = [
        {"event": "settings", "format": 1, "space": space, "mode": "min", **plain},
        search.events[-1].to_json(),
    ]
    old = replay(search.space, "min", lines)
    wanted = {"predicted": 9.0, "predicted_low": 8.0, "predicted_high": 9.5}
    assert old.trials[0].info == wanted


@pytest.mark.parametrize("n", ["2", 2.5, True, 0])
def test_ask_takes_a_count(n: Any) -> None:
    with pytest.raises(NasboError, match="n must be an integer >= 1"):
        _search().ask(n)


def test_tell_takes_a_trial() -> None:
    search = _search()
    (trial,) = search.ask(1)
    with pytest.raises(NasboError, match="a trial or its number is needed, got"):
        search.tell(trial.config, 0.5)  # type: ignore[arg-type]


def test_trials_that_are_handed_out_are_copies() -> None:
    search = _search()
    (trial,) = search.ask(1)
    search.tell(trial, 0.5, metrics={"size": 3})
    for copy in (search.trials[0], search.best):
        copy.metrics["size"] = 99  # type: ignore[index]
        copy.config["C"] = -1.0
        copy.info["x"] = 1  # type: ignore[index]
    assert search.history.trials[0].metrics == {"size": 3}
    assert search.history.trials[0].config != copy.config
    assert "x" not in search.history.trials[0].info


def test_a_journal_that_this_process_holds_says_so(tmp_path: Path) -> None:
    first = _search(journal=tmp_path / "j")
    with pytest.raises(JournalError, match=r"by this process itself: close\(\) the search"):
        _search(journal=tmp_path / "j")
    first.close()


def test_only_known_causes_put_a_run_back() -> None:
    search = _search()
    (trial,) = search.ask(1)
    with pytest.raises(NasboError, match=r"must be one of .* got 'tired'"):
        search.requeue(trial, "tired")
