"""Recipes: what is shipped, overrides, and what is refused."""

from typing import Any

import pytest

from trainers.recipe import InvalidOption, load_recipe, recipe_names


def test_the_default_is_the_paper() -> None:
    assert load_recipe({}) == load_recipe({"recipe": "paper"})
    assert (load_recipe({}).epochs, load_recipe({}).n_train, load_recipe({}).width) == (
        100,
        45_000,
        1,
    )


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
        ({"recipe": "best"}, "recipe must be one of paper, proxy, tiny, got 'best'"),
        ({"epoch": 3}, r"options must be among recipe, n_train.*got \['epoch'\]"),
        ({"epochs": 0}, r"epochs must be of type int in 1\.\.100000, got 0"),
        ({"epochs": True}, "epochs must be of type int"),
        ({"epochs": 1.5}, "epochs must be of type int"),
        ({"width": 2.0}, r"width must be of type float in 0\.01\.\.1\.0, got 2\.0"),
        ({"image_size": 12}, "image_size must be 8, 16 or 32, got 12"),
        ({"n_train": 46_000}, "n_train . n_validation must be at most 50000, got 51000"),
        ({"n_validation": 100}, "n_validation_early must be at most n_validation = 100, got 5000"),
        ({"data": 3}, "data must be a folder's name, got 3"),
        ({"weight_decay": float("nan")}, "weight_decay must be of type float"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidOption, match=rule):
        load_recipe(options)
