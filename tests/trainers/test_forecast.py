"""Forecast of a configuration before it is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.trainers.test_memory import predicted_bytes
from trainers import cifar10, cost, forecast
from trainers.architecture import InvalidArchitecture
from trainers.device import expected_precision
from trainers.recipe import load_recipe

Make = Callable[..., dict[str, Any]]
TINY = {"recipe": "tiny", "threads": 1}


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Measurements of the tests are kept apart from those of the machine."""
    monkeypatch.setenv("NASBO_DATA", str(tmp_path))
    caches = (forecast._speed_file, forecast._known_rates)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def test_the_architecture_itself(sample_config: Make) -> None:
    config = sample_config(3)
    assert forecast.summary(config) == cost.summary(config)


def test_as_options_train_it(sample_config: Make) -> None:
    config = sample_config(3)
    found = forecast.summary(config, {"recipe": "proxy"})
    whole, trial = cost.summary(config), cost.summary(config, 0.5, 10, 16)
    assert (found["params"], found["flops"]) == (whole["params"], whole["flops"])
    assert (found["trial_params"], found["trial_flops"]) == (trial["params"], trial["flops"])
    recipe = load_recipe({"recipe": "proxy"})
    kind = expected_precision(recipe)
    assert found["memory_bytes"] == predicted_bytes(config, recipe, config["batch_size"], kind)
    assert "seconds" not in found


@pytest.mark.parametrize(
    ("options", "n"),
    [({}, 400), ({"n_train": 100}, 100), ({"train_on": "train+validation"}, 600)],
)
def test_batches_are_checked_against_the_pictures(
    uniform_config: Make, options: dict[str, Any], n: int
) -> None:
    cifar10.check(uniform_config(0, batch_size=1024))
    cifar10.check(uniform_config(0, batch_size=n), options={**TINY, **options})
    with pytest.raises(InvalidArchitecture, match=f"at most n_train = {n}, got {n + 1}"):
        cifar10.check(uniform_config(0, batch_size=n + 1), options={**TINY, **options})


def test_seconds_after_one_measurement(uniform_config: Make) -> None:
    small = uniform_config(0)
    large = uniform_config(0, nums_layer=[2] * 4, kernel_size=[5] * 4)
    rates = forecast.calibrate(TINY)
    assert all(a >= 0 and b >= 0 and a + b > 0 for a, b in rates.values())
    first, second = (forecast.summary(c, TINY)["seconds"] for c in (small, large))
    assert forecast.SETUP_S < first < second
    longer = {**TINY, "epochs": 20}
    assert forecast.summary(small, longer)["seconds"] - 1 == pytest.approx(10 * (first - 1))
    assert "seconds" not in forecast.summary(small, {**TINY, "width": 0.5})
    assert forecast.calibrate(TINY) == rates  # read, not measured again: no two are the same
