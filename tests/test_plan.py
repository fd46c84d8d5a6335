"""Settings of a sweep, before anything begins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from nasbo.errors import SweepError
from nasbo.plan import check_same, prepare
from nasbo.start import plan_sweep
from nasbo.sweep import create_folder

CONSOLE = Console(quiet=True)


@pytest.mark.parametrize(
    ("given", "goal"),
    [
        ({}, ("val_accuracy", "max")),
        ({"metric": "val_accuracy"}, ("val_accuracy", "max")),
        ({"metric": "val_loss", "mode": "min"}, ("val_loss", "min")),
        (
            {"metric": "test_accuracy", "trainer_options": {"objective": "test"}},
            ("test_accuracy", "max"),
        ),
    ],
)
def test_the_trainers_mode_is_that_of_its_own_metrics(
    given: dict[str, Any], goal: tuple[str, str]
) -> None:
    sweep, _ = prepare("nas_cifar10", given, CONSOLE)
    assert (sweep.metric, sweep.mode) == goal


def test_another_metric_needs_a_mode() -> None:
    with pytest.raises(SweepError, match="metric val_loss: say --mode min or --mode max"):
        prepare("nas_cifar10", {"metric": "val_loss"}, CONSOLE)
    given = {"trainer": "tests.tune.toy:simulation", "metric": "loss"}
    sweep, _ = prepare("simulation", given, CONSOLE)
    assert (sweep.metric, sweep.mode) == ("loss", "min")


def test_data_that_only_workers_have_are_said_in_a_line(tmp_path: Path) -> None:
    options = {"recipe": "proxy", "data": str(tmp_path / "nowhere")}
    prepare("nas_cifar10", {"trainer_options": options}, CONSOLE)
    words = f"describe a config here: DataError: {tmp_path}/nowhere: must be a folder of pictures"
    pairs = tuple(f"{name}={value}" for name, value in options.items())
    for constraints in ((), ("params<=1e6",)):
        given = {"trainer_options": pairs, "constraints": constraints}
        with pytest.raises(SweepError, match=words):
            plan_sweep("nas_cifar10", given, CONSOLE)


def test_a_warm_start_is_named_by_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"trainer": "tests.tune.toy:simulation", "mode": "min", "method": "random"}
    sweep, space = prepare("simulation", {**given, "warm_start": "runs/first"}, CONSOLE)
    assert sweep.warm_start == str(tmp_path / "runs" / "first")
    url, _ = prepare("simulation", {**given, "warm_start": "s3://b/first"}, CONSOLE)
    assert url.warm_start == "s3://b/first"
    create_folder(tmp_path / "s", replace(sweep, warm_start="runs/first"))
    monkeypatch.chdir("/")
    check_same(tmp_path / "s", sweep, space)
    with pytest.raises(SweepError, match="holds a sweep with warm_start"):
        check_same(tmp_path / "s", url, space)
