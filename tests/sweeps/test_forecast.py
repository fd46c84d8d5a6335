"""Forecast of a sweep's cost: distributions, rounds and durations."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest
import torch
from rich.console import Console

from nasbo.errors import NasboError, SweepError
from nasbo.report.forecast import describe_forecast, describe_length, describe_rungs
from nasbo.space import load_space
from nasbo.start import plan_sweep, show_summaries
from nasbo.sweeps.forecast import (
    Forecast,
    draw_forecast,
    expected_slots,
    round_sizes,
    simulate_rungs,
    sweep_length,
)
from nasbo.sweeps.settings import Sweep, limits_of, make_sweep

SPACE = load_space(
    {"n": {"type": "int", "range": [1, 20]}, "x": {"type": "float", "range": [0, 1]}}
)
TRAINER = "tests.tune.sized:train"


def sweep(**settings: object) -> Sweep:
    return Sweep(space="s.yaml", trainer=TRAINER, **{"slots": 2, "trials": 10, **settings})  # type: ignore[arg-type]


def test_numbers_are_drawn_inside_the_constraints() -> None:
    limits = limits_of(sweep(constraints=["params<=5e3"], trainer_options={"scale": 2}))
    assert limits is not None
    forecast = draw_forecast(SPACE, limits.describe, limits, 300)
    assert set(forecast.numbers) == {"params", "flops", "seconds"}
    assert set(forecast.numbers["params"]) == {2000.0, 4000.0}
    assert 10 < forecast.n_allowed < 60
    assert forecast.shares("seconds")["max"] == 4.0


@pytest.mark.parametrize(
    ("settings", "sizes"),
    [
        ({}, [2, 2, 2, 2, 2]),
        ({"slots": 4}, [2, 4, 4]),
        ({"batch": 1, "trials": 4}, [2, 1, 1]),
        ({"schedule": "async"}, [10]),
        ({"repeats": 2, "repeat_top": 3, "trials": 4}, [2, 2, 6]),
    ],
)
def test_rounds_of_a_sweep(settings: dict[str, object], sizes: list[int]) -> None:
    planned = sweep(**settings)
    assert round_sizes(planned, SPACE, int(planned.slots)) == sizes


def test_length_is_that_of_the_slowest_slot() -> None:
    even = Forecast(1, 1, {"seconds": [3.0]})
    length = sweep_length(even, sweep(trials=5), SPACE)
    assert length is not None
    assert (length.low_s, length.median_s, length.high_s) == (9.0, 9.0, 9.0)
    assert (length.n_trainings, length.slots) == (5, 2)
    assert "about 9 s (9 s to 9 s) for 5 trainings on 2 slots" in describe_length(length)
    assert sweep_length(Forecast(1, 1, {"params": [3.0]}), sweep(), SPACE) is None
    assert "no summary(config) with 'seconds'" in describe_length(None)


@pytest.mark.parametrize(
    ("settings", "n_gpus", "slots"),
    [
        ({}, 0, 8),
        ({"trials": 3}, 0, 3),
        ({"trials": 3, "repeats": 5}, 0, 8),
        ({"gpus_per_trial": 1}, 2, 2),
        ({"gpus_per_trial": 0.5, "cpus_per_trial": 0}, 2, 4),
        ({"gpus_per_trial": 1}, 0, 1),
        ({"resources": {"spot": 0.1}}, 0, 8),
        ({"cpus_per_trial": 1e-9}, 0, 10),
        ({"slots": 3}, 0, 3),
    ],
)
def test_slots_are_what_cores_and_gpus_hold(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, object], n_gpus: int, slots: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: n_gpus)
    assert expected_slots(sweep(**{"slots": "auto", **settings})) == slots


def test_more_slots_than_trials_take_no_memory() -> None:
    even = Forecast(1, 1, {"seconds": [3.0]})
    tracemalloc.start()
    length = sweep_length(even, sweep(trials=5, slots=10**6), SPACE)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert length is not None
    assert length.median_s == 6.0, "two rounds"
    assert peak < 10**6


def words(found: object) -> str:
    console = Console(record=True, width=120)
    console.print(found)
    return console.export_text()


def test_tables() -> None:
    text = words(describe_forecast(Forecast(4, 2, {"params": [1e6, 2e6]}), "what", "params <= 1"))
    assert "kept by 2 of 4 drawn configs (50.0%)" in text
    assert "1,500,000" in text
    assert "nothing is known beforehand" in words(describe_forecast(Forecast(4, 4, {}), "what"))


@pytest.fixture
def space_file(tmp_path: Path) -> str:
    file = tmp_path / "own.yaml"
    file.write_text("n: {type: int, range: [1, 20]}\nx: {type: float, range: [0, 1]}\n")
    return str(file)


def test_dry_runs_begin_nothing(
    space_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    console = Console(record=True, width=120)
    given = {"trainer": TRAINER, "constraints": ("params<=1e4",), "slots": "2", "trials": 10}
    assert plan_sweep(space_file, given, console) == 0
    show_summaries(space_file, {"trainer": TRAINER, "seed": 1}, 50, console)
    text = console.export_text()
    assert "10 trials of tests.tune.sized:train on own" in text
    assert "constraints: params <= 10000: kept by" in text
    assert "length: about" in text
    assert "50 configs of own" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own.yaml"]


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        ("params<=1", "no config keeps to the constraints: none of 10,000 drawn ones did"),
        ("watts<=1", "no number 'watts'; known: params, flops, seconds"),
        ("params", "a constraint must be like"),
    ],
)
def test_bad_constraints_are_said_at_the_door(
    space_file: str, constraint: str, message: str
) -> None:
    given = {"trainer": TRAINER, "constraints": (constraint,)}
    with pytest.raises(NasboError, match=message):
        plan_sweep(space_file, given, Console())


def test_constraints_need_a_summary(space_file: str) -> None:
    given = {"trainer": "tests.tune.toy:simulation", "constraints": ("params<=1",)}
    with pytest.raises(SweepError, match="need a function summary"):
        plan_sweep(space_file, given, Console())


def test_with_rungs_a_budget_is_trainings_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    space = load_space("nas_cifar10")
    settings = {"trials": 20, "slots": 2, "trainer": "tests.tune.climbing:train"}
    whole = make_sweep({"space": "nas_cifar10", **settings})
    parts = make_sweep({"space": "nas_cifar10", "rungs": [2, 6, 18], **settings})
    assert simulate_rungs(whole, space) is None
    found = simulate_rungs(parts, space)
    assert found is not None
    assert 19 * 18 <= sum(found.steps) <= 20 * 18
    assert found.n_configs > 40
    assert 2 <= found.n_full <= 12
    (words,) = describe_rungs(found, 20)
    assert f"about {found.n_configs} configs, {found.n_full} of them trained in full" in words
    forecast = Forecast(1, 1, {"seconds": [9.0]})
    length, full = (sweep_length(forecast, one, space) for one in (parts, whole))
    assert length is not None
    assert full is not None
    assert length.median_s == pytest.approx(full.median_s, rel=0.1), "the same work"
