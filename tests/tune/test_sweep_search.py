"""Searcher of a sweep in a bucket, without Ray: names, and trials during an outage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nasbo.storage.mirror import location_of, open_mirror
from nasbo.sweeps.folder import SweepFolder, create_folder, trial_folder
from nasbo.sweeps.settings import Sweep
from nasbo.trainer import load_trainer
from nasbo.tune.sweep_search import SweepSearch
from nasbo.tune.trial import TIMEOUT_FILE

TRAINER = "tests.tune.toy:simulation"
DIED = "ray.exceptions.ActorDiedError: The actor died unexpectedly"


@pytest.fixture
def searcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SweepSearch]:
    monkeypatch.setenv("NASBO_CACHE", str(tmp_path / "cache"))
    folder = open_mirror(f"file://{tmp_path}/bucket/first")
    create_folder(folder, Sweep("simulation", TRAINER, method="random", max_failures=1))
    sweep = SweepFolder(folder)
    found = SweepSearch(sweep.settings, sweep.space, folder, load_trainer(TRAINER))
    yield found
    found.search.close()


def begin(searcher: SweepSearch, name: str) -> int:
    """Start the next trial of the sweep under the name that Tune gives it."""
    number = searcher.search.ask(1)[0].id
    searcher._trials[name] = number
    return number


def away(*_: Any) -> None:
    raise OSError("no route to the bucket")


def test_a_trial_that_breaks_off_while_the_bucket_is_away_still_ends(
    searcher: SweepSearch, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    number = begin(searcher, "a")
    stale = trial_folder(searcher._folder, number) / TIMEOUT_FILE
    stale.parent.mkdir(parents=True)
    stale.write_text("of an attempt before")
    location = location_of(searcher._folder)
    assert location is not None
    monkeypatch.setattr(location, "read", away)
    searcher.on_error("a", DIED)
    trial = searcher.search.history.trial(number)
    assert "why it broke off cannot be fetched: no route to the bucket" in caplog.text
    assert (trial.is_open, dict(trial.retries)) == (True, {"killed": 1}), "it is run again"
    assert not searcher._trials
    searcher._trials["b"] = number
    searcher.on_error("b", DIED)
    trial = searcher.search.history.trial(number)
    assert (trial.state, trial.cause) == ("failed", "killed")
    assert not searcher._trials


def test_checkpoints_that_cannot_be_removed_now_are_removed_later(
    searcher: SweepSearch, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    location = location_of(searcher._folder)
    assert location is not None
    numbers = [begin(searcher, name) for name in "ab"]
    location.write(f"trials/{numbers[0]:05d}/checkpoint.pt", b"weights")
    with monkeypatch.context() as network:
        network.setattr(location, "sizes", away)
        searcher.search.tell(numbers[0], error="crashed")
        searcher.driver.settle(numbers[0])
    assert "old checkpoints cannot be removed: no route to the bucket" in caplog.text
    searcher.search.tell(numbers[1], error="crashed")
    searcher.driver.settle(numbers[1])
    assert not location.sizes("trials")


def test_the_process_that_decides_is_called_as_the_sweep(searcher: SweepSearch) -> None:
    assert searcher._folder.name != "first"
    assert searcher._recipe().sweep == "first"
