"""Settings of a sweep, before anything begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from nasbo.errors import SweepError
from nasbo.plan import prepare
from nasbo.start import plan_sweep

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
