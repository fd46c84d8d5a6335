"""Options of a sweep come in, one checked `Recipe` comes out: how every trial is trained.

A recipe is a small YAML file in `trainers/recipes`; options may override each of its keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "recipes"
DEFAULT = "paper"


class InvalidOption(ValueError):  # noqa: N818, the name says what is wrong
    """An option of the sweep is unknown or out of range; the message has the rule and the value."""


@dataclass(frozen=True)
class Recipe:
    """How a trial is trained, apart from what its configuration says.

    `n_validation_early` pictures score all epochs but the last, which has all `n_validation`;
    `crop_padding` is in pixels of a 32-pixel picture; `data` is the folder of the data sets.
    """

    n_train: int
    n_validation: int
    n_validation_early: int
    epochs: int
    image_size: int
    width: float
    split_seed: int
    crop_padding: int
    momentum: float
    weight_decay: float
    warmup_share: float
    threads: int
    checkpoint_every_s: float
    is_tensorboard: bool
    data: str | None = None

    def __post_init__(self) -> None:
        for name, low, high in RANGES:
            _check_range(name, getattr(self, name), low, high)
        if self.image_size not in (8, 16, 32):
            raise InvalidOption(f"image_size must be 8, 16 or 32, got {self.image_size}")
        if self.n_train + self.n_validation > 50_000:
            total = self.n_train + self.n_validation
            raise InvalidOption(f"n_train + n_validation must be at most 50000, got {total}")
        if self.n_validation_early > self.n_validation:
            raise InvalidOption(
                f"n_validation_early must be at most n_validation = {self.n_validation}, "
                f"got {self.n_validation_early}"
            )
        if self.data is not None and not isinstance(self.data, str):
            raise InvalidOption(f"data must be a folder's name, got {self.data!r}")


RANGES: tuple[tuple[str, float, float], ...] = (
    ("n_train", 2, 50_000),
    ("n_validation", 1, 50_000),
    ("n_validation_early", 1, 50_000),
    ("epochs", 1, 100_000),
    ("image_size", 8, 32),
    ("width", 0.01, 1.0),
    ("split_seed", 0, 2**63),
    ("crop_padding", 0, 16),
    ("momentum", 0.0, 0.9999),
    ("weight_decay", 0.0, 1.0),
    ("warmup_share", 0.0, 1.0),
    ("threads", 1, 1024),
    ("checkpoint_every_s", 0.0, float("inf")),
    ("is_tensorboard", False, True),
)


def recipe_names() -> list[str]:
    """The recipes that are shipped."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load_recipe(options: Mapping[str, Any]) -> Recipe:
    """The recipe that `options["recipe"]` names (default `paper`), with the other options on top.

    Raises:
        InvalidOption: an unknown recipe or option, or a value outside its range.
    """
    name = options.get("recipe", DEFAULT)
    if name not in recipe_names():
        raise InvalidOption(f"recipe must be one of {', '.join(recipe_names())}, got {name!r}")
    overrides = {key: value for key, value in options.items() if key != "recipe"}
    known = [field.name for field in fields(Recipe)]
    unknown = sorted(str(key) for key in overrides if key not in known)
    if unknown:
        raise InvalidOption(f"options must be among recipe, {', '.join(known)}, got {unknown}")
    written = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return Recipe(**{**written, **overrides})


def _check_range(name: str, value: object, low: float, high: float) -> None:
    kind = Recipe.__annotations__[name]
    right: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,)}
    is_right = isinstance(value, right[kind]) and (kind == "bool" or not isinstance(value, bool))
    if not is_right or not low <= value <= high:  # type: ignore[operator]
        raise InvalidOption(f"{name} must be of type {kind} in {low}..{high}, got {value!r}")
