"""Learning rate schedules: rise, fall and end values."""

from collections.abc import Callable
from typing import Any

import pytest

from trainers.recipe import load_recipe
from trainers.schedule import learning_rate

Make = Callable[..., dict[str, Any]]


def _rates(config: dict[str, Any], total: int, **options: Any) -> list[float]:
    recipe = load_recipe({"recipe": "tiny", **options})
    return [learning_rate(config, recipe, step, total) for step in range(total)]


def test_cosine_rises_in_the_warm_up_and_falls_to_nothing(uniform_config: Make) -> None:
    rates = _rates(uniform_config(0), 1000, schedule="cosine", warmup_share=0.1)
    assert rates[0] == pytest.approx(0.001)
    assert max(rates) == rates[99] == pytest.approx(0.1)
    assert rates[550] == pytest.approx(0.05, rel=0.01)
    assert rates[99:] == sorted(rates[99:], reverse=True)
    assert 0 < rates[-1] < 1e-6


def test_one_cycle_peaks_at_a_quarter(uniform_config: Make) -> None:
    rates = _rates(uniform_config(0), 1000, schedule="one_cycle")
    assert max(rates) == pytest.approx(0.1)
    assert rates.index(max(rates)) in (249, 250)
    assert rates[:250] == sorted(rates[:250])
    assert rates[250:] == sorted(rates[250:], reverse=True)
    assert 0 < rates[-1] < 0.001


@pytest.mark.parametrize("schedule", ["step", "cosine", "one_cycle"])
@pytest.mark.parametrize("total", [1, 2, 3])
def test_very_short_trainings_have_a_rate(uniform_config: Make, schedule: str, total: int) -> None:
    assert all(0 < rate <= 0.1 for rate in _rates(uniform_config(0), total, schedule=schedule))
