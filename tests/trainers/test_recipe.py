"""Recipes: the shipped ones, overrides, and errors."""

from typing import Any

import pytest

from trainers.cifar10 import check_options
from trainers.recipe import InvalidOption, load_recipe, recipe_names


def test_the_default_is_the_paper() -> None:
    assert load_recipe({}) == load_recipe({"recipe": "paper"})
    paper = load_recipe({})
    assert (paper.epochs, paper.n_train, paper.n_validation, paper.width) == (100, None, 0.1, 1)
    assert (paper.schedule, paper.mixup, paper.ema_decay) == ("step", 0, 0)


def test_the_proxy_is_as_measured() -> None:
    proxy = load_recipe({"recipe": "proxy"})
    assert (proxy.n_train, proxy.n_validation, proxy.epochs) == (4000, 5000, 6)
    assert (proxy.image_size, proxy.width, proxy.warmup_share) == (16, 0.5, 0.05)


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_loads_and_takes_overrides(name: str) -> None:
    assert load_recipe({"recipe": name, "epochs": 3, "threads": 2}).epochs == 3


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"recipe": "best"}, "recipe must be one of paper, proxy, quick, strong, tiny, got 'best'"),
        ({"epoch": 3}, r"options must be among recipe, epochs.*got \['epoch'\]"),
        ({"epochs": 0}, r"epochs must be of type int in 1\.\.100000, got 0"),
        ({"epochs": True}, "epochs must be of type int"),
        ({"epochs": 1.5}, "epochs must be of type int"),
        ({"width": 2.0}, r"width must be of type float in 0\.01\.\.1\.0, got 2\.0"),
        ({"image_size": 12}, "image_size must be 8, 16 or 32, got 12"),
        ({"n_train": 46_000}, r"at most the 50000 pictures there are.*got 46000 \+ 5000"),
        ({"n_validation_early": 5001}, "early must be at most n_validation = 5000, got 5001"),
        ({"n_validation": 0.0}, "n_validation must be positive where validation is the objective"),
        ({"n_validation": 7.5}, "n_validation must be a whole number or a share below 1, got 7.5"),
        ({"data": 3}, "data must be a path, got 3"),
        ({"weight_decay": float("nan")}, "weight_decay must be of type float"),
        ({"schedule": "linear"}, "schedule must be one of step, cosine, one_cycle, got 'linear'"),
        ({"train_on": "test"}, r"train_on must be one of train, train\+validation, got 'test'"),
        ({"seed": -1}, "seed must be of type int in 0"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidOption, match=rule):
        check_options(options)
