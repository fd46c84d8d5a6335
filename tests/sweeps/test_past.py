"""Results of another sweep: compared before they are used."""

from __future__ import annotations

import io
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from nasbo.errors import SweepError
from nasbo.history import Objectives
from nasbo.history.journal import read_events
from nasbo.search import Search
from nasbo.space import load_space
from nasbo.start import plan_sweep
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import create_folder
from nasbo.sweeps.past import read_past
from nasbo.sweeps.settings import Sweep
from nasbo.tune.run import _warm_start

TRAINER = "tests.tune.toy:simulation"
SPACE = load_space("simulation")


def past(folder: Path, **settings: Any) -> Sweep:
    """A folder with a sweep of four results; returns a sweep that starts with them."""
    held = Sweep("simulation", TRAINER, metric="loss", **{"mode": "min", **settings})
    create_folder(folder, held)
    with Search("simulation", "random", held.mode, journal=folder / JOURNAL_FILE) as search:
        for trial in search.ask(4):
            search.tell(trial, float(trial.id))
    return replace(held, warm_start=str(folder), method="random")


def test_results_of_an_equal_sweep_are_taken_over_without_a_word(tmp_path: Path) -> None:
    found = read_past(past(tmp_path / "a"), SPACE)
    assert sorted(value for _, value in found.results) == [0.0, 1.0, 2.0, 3.0]
    assert not found.remarks
    assert read_past(Sweep("simulation", TRAINER), SPACE).results == ()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"mode": "max"}, "has min loss, this sweep max loss"),
        ({"metric": "acc"}, "has min loss, this sweep min acc"),
        ({"metric": None}, "has min loss, this sweep min value"),
    ],
)
def test_another_metric_or_mode_is_refused(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    with pytest.raises(SweepError, match=says):
        read_past(replace(past(tmp_path / "a"), **change), SPACE)


def test_another_trainer_its_options_and_data_are_told(tmp_path: Path) -> None:
    data = {"hash": "abc", "split": "1"}
    sweep = past(tmp_path / "a", trainer_options={"epochs": 2, "size": 3}, provenance=data)
    other = replace(
        sweep,
        trainer="own:train",
        trainer_options={"epochs": 5, "size": 3, "wide": True},
        provenance={"hash": "abd", "split": "1"},
    )
    name = f"warm start from {sweep.warm_start}: "
    assert read_past(other, SPACE).remarks == [
        f"{name}its trainer is {TRAINER}, this one's is own:train",
        f"{name}option epochs was 2, here 5",
        f"{name}option wide was nothing, here True",
        f"{name}data: hash was 'abc', here 'abd'",
        f"{name}its results teach the surrogate, but do not count as results of this sweep",
    ]


def test_results_that_do_not_fit_are_told_with_the_first_difference(tmp_path: Path) -> None:
    sweep = past(tmp_path / "a")
    flat = load_space({"x": {"type": "float", "range": [0, 1]}})
    with pytest.raises(SweepError, match="no finished trial belongs to this space; trial 0") as e:
        read_past(sweep, flat)
    assert "'x'" in str(e.value)
    smaller = load_space("simulation").to_dict()
    del smaller["x1"]["submodule"][1]
    found = read_past(sweep, load_space(smaller))
    assert 0 < len(found.results) < 4
    assert f"{4 - len(found.results)} of 4 results do not fit this space" in found.remarks[0]
    assert "must be absent under x1=1" in found.remarks[0]


def test_the_dry_run_tells_the_differences_and_refuses_another_mode(tmp_path: Path) -> None:
    past(tmp_path / "a", trainer_options={"epochs": 2})
    text = io.StringIO()
    given = {"trainer": TRAINER, "metric": "loss", "warm_start": str(tmp_path / "a")}
    assert plan_sweep("simulation", given, Console(file=text, width=200)) == 0
    assert "option epochs was 2, here nothing" in text.getvalue()
    with pytest.raises(SweepError, match="has min loss, this sweep max loss"):
        plan_sweep("simulation", {**given, "mode": "max"}, Console(file=text))


def test_a_past_without_results_is_refused_when_the_sweep_begins(tmp_path: Path) -> None:
    create_folder(tmp_path / "a", Sweep("simulation", TRAINER, metric="loss"))
    sweep = Sweep("simulation", TRAINER, metric="loss", warm_start=str(tmp_path / "a"))
    with pytest.raises(SweepError, match="no trial has finished, so there is nothing to take over"):
        read_past(sweep, SPACE).require_results()


def test_results_of_another_trainer_are_never_the_best(tmp_path: Path) -> None:
    sweep = replace(past(tmp_path / "a"), trainer="own:train")
    found = read_past(sweep, SPACE)
    assert not found.is_comparable
    assert "do not count as results of this sweep" in found.remarks[-1]
    search = Search("simulation", "random")
    for config, value in found.results:
        search.observe(config, value, "a", found.is_comparable)
    assert search.history.best is None
    assert not search.history.has_own_result
    assert len(search.history.rows()) == 4, "the surrogate learns from them"
    (trial,) = search.ask(1)
    search.tell(trial, 100.0)
    assert search.best.id == trial.id
    assert search.history.best_so_far()[-1] == 100.0


def test_failed_trials_that_are_not_taken_over_are_told(tmp_path: Path) -> None:
    sweep = past(tmp_path / "a")
    with Search("simulation", "random", journal=tmp_path / "a" / JOURNAL_FILE) as search:
        for trial in search.ask(2):
            search.tell(trial, error="crashed")
    assert "2 trials that failed are not taken over" in read_past(sweep, SPACE).remarks[0]


def test_a_history_knows_its_past_when_the_folder_is_gone(tmp_path: Path) -> None:
    sweep = past(tmp_path / "a")
    other = load_space("simulation").to_dict()
    journal, digest = tmp_path / "b.jsonl", ""
    for is_gone in (False, True):
        with Search("simulation", "random", journal=journal) as search:
            if is_gone:
                shutil.rmtree(tmp_path / "a")
            else:
                digest = sha256((tmp_path / "a" / JOURNAL_FILE).read_bytes()).hexdigest()
                _warm_start(search, sweep)
                _warm_start(search, sweep)
                search.observe(SPACE.sample(np.random.default_rng(7)), 9.0)
            for view in (search.history, search.history.snapshot()):
                (found,) = view.past
                assert (found.name, found.digest) == (str(tmp_path / "a"), digest)
                assert found.space.to_dict() == other
                assert found.objectives == Objectives.of("min", "loss")
                assert [trial.value for trial in found.trials] == [0.0, 1.0, 2.0, 3.0]
    assert sum(line["event"] == "past" for line in read_events(journal)) == 1


def test_a_past_that_went_on_before_the_sweep_began_is_noted_anew(tmp_path: Path) -> None:
    sweep, search = past(tmp_path / "a"), Search("simulation", "random")
    _warm_start(search, sweep)
    (before,) = search.history.past
    with Search("simulation", "random", journal=tmp_path / "a" / JOURNAL_FILE) as other:
        (trial,) = other.ask(1)
        other.tell(trial, 4.0)
    _warm_start(search, sweep)
    (now,) = search.history.past
    assert now.digest != before.digest
    assert len(now.trials) == 5


def test_a_search_that_takes_nothing_in_has_no_past() -> None:
    search = Search("simulation", "random")
    _warm_start(search, Sweep("simulation", TRAINER))
    assert search.history.past == ()
