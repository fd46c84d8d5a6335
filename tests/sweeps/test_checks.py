"""Checks of a sweep's settings before it begins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from nasbo.errors import SweepError
from nasbo.start import Display, plan_sweep, start_sweep
from nasbo.sweeps.checks import check_same, check_search, prepare, prepare_data
from nasbo.sweeps.folder import create_folder

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


def test_a_trainer_that_refuses_every_config_is_said_once() -> None:
    for trainer, options, words in (
        ("tests.tune.dataless:train", {"is_refused": True}, "100 drawn configs: nothing can be"),
        ("trainers.cifar10:train", {"n_train": 20}, "batch_size must be at most n_train = 20"),
    ):
        space = "simulation" if trainer.startswith("tests") else "nas_cifar10"
        made = prepare(space, {"trainer": trainer, "trainer_options": options}, CONSOLE)
        with pytest.raises(SweepError, match=words):
            check_search(*made)
    few = {"trainer_options": {"n_train": 100}}
    check_search(*prepare("nas_cifar10", few, CONSOLE))  # some batches fit


def test_data_are_made_ready_before_a_sweep_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    given = {"trainer": "tests.tune.dataless:train", "trainer_options": ("is_missing=true",)}
    with pytest.raises(SweepError, match="dataless:train: no pictures in /nowhere"):
        start_sweep("simulation", tmp_path / "s", given, Display(CONSOLE))
    assert not (tmp_path / "s").exists()
    options = {"recipe": "proxy", "data": str(tmp_path / "nowhere")}
    sweep, _ = prepare("nas_cifar10", {"trainer_options": options}, CONSOLE)
    with pytest.raises(SweepError, match="nowhere: must be a folder of pictures"):
        prepare_data(sweep, CONSOLE)
    prepare_data(replace(sweep, address="head:6379"), CONSOLE)
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    prepare_data(sweep, CONSOLE)


def test_options_of_the_command_line_are_added_to_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(
        "space: nas_cifar10\n"
        "trainer_options: {recipe: tiny, epochs: 2, width: 0.25}\n"
        "method_options: {preset: paper, pooling: token}\n"
        "resources: {spot: 0.001, fast: 1}\n"
        "constraints: ['params <= 2e6']\n"
    )
    given = {
        "trainer_options": {"epochs": 3},
        "method_options": {"pooling": "mean"},
        "resources": {"fast": 2},
        "constraints": ["flops <= 1e9"],
    }
    sweep, _ = prepare(str(file), given, CONSOLE)
    assert sweep.trainer_options == {"recipe": "tiny", "epochs": 3, "width": 0.25}
    assert sweep.method_options == {"preset": "paper", "pooling": "mean"}
    assert sweep.resources == {"spot": 0.001, "fast": 2}
    assert sweep.constraints == ["params <= 2e6", "flops <= 1e9"]
    assert prepare(str(file), {}, CONSOLE)[0].trainer_options["epochs"] == 2


def test_options_of_a_method_do_not_go_to_another_one(tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text("space: simulation\ntrainer_options: {a: 1}\nmethod_options: {preset: paper}\n")
    trainer = {"trainer": "tests.tune.toy:simulation"}
    given = {**trainer, "method": "tpe", "method_options": {"multivariate": True}}
    assert prepare(str(file), given, CONSOLE)[0].method_options == {"multivariate": True}
    assert prepare(str(file), {**trainer, "method": "tpe"}, CONSOLE)[0].method_options == {}
    sweep, _ = prepare(str(file), {**trainer, "method": "attnbo"}, CONSOLE)
    assert (sweep.method_options, sweep.trainer_options) == ({"preset": "paper"}, {"a": 1})


@pytest.mark.parametrize("metric", ["acc", "val_accuracy", "test-AUC", "f1"])
def test_metrics_that_want_to_be_large_need_a_mode(metric: str) -> None:
    given = {"trainer": "tests.tune.toy:simulation", "metric": metric}
    with pytest.raises(SweepError, match=f"mode must be given for the metric {metric}"):
        prepare("simulation", given, CONSOLE)
    assert prepare("simulation", {**given, "mode": "max"}, CONSOLE)[0].mode == "max"


def test_options_that_are_left_out_are_told(tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text("space: simulation\nmethod_options: {preset: paper}\nmethod: attnbo\n")
    console = Console(record=True, width=300)
    prepare(str(file), {"trainer": "tests.tune.toy:simulation", "method": "gp"}, console)
    assert "are for the method attnbo: left out" in console.export_text()
