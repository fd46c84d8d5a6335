"""Recipe: how every trial of a sweep is trained.

A recipe is a small YAML file in `trainers/recipes`; the options of a sweep may
override each of its keys.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from trainers.architecture import LARGEST_IMAGE

FOLDER = Path(__file__).parent / "recipes"
DEFAULT = "paper"


class InvalidOption(ValueError):  # noqa: N818, the name says what is wrong
    """An option of the sweep is unknown or out of range; the message has the rule and the value."""

    cause = "invalid"


@dataclass(frozen=True)
class Recipe:
    """How a trial is trained, apart from its configuration.

    Attributes:
        epochs: passes over the training images.
        image_size: side of the images in pixels.
        width: factor in (0, 1] on all channels.
        n_validation: images held out of the training set: a count, or a fraction below 1.
        n_validation_early: number of them for all epochs but the last; None means all.
        n_train: number of training images; None means all that are not held out.
        split_seed: of the split, the same for all trials.
        train_on: `train`, or `train+validation` when nothing is left to be chosen.
        objective: `validation`; `test` scores every epoch on the test set. That is honest only as a
            reproduction of the paper, and is labelled in the results.
        evaluate_test: scores the test set once, after the last epoch.
        crop_padding, cutout: in pixels of an image of 32 pixels; 0 means none.
        mixup: parameter of the Beta distribution of the mixup weights; 0 means none.
        schedule: of the learning rate: `step` (set by the configuration), `cosine` or `one_cycle`.
        ema_decay: decay of the averaged weights, which are then scored and saved; 0 means no
            average.
        precision: `auto` is float32 on CPUs and the fastest that works on the GPU.
        ranks: processes that share a trial's batches; None means one per visible GPU.
        threads: per process; None means $OMP_NUM_THREADS, else 1.
        checkpoint_every_s, checkpoint_every_epochs: intervals of checkpoints; 0 epochs means never.
        seed: of weights, order and augmentation, combined with the session's seed, so that repeats
            still differ; None means the session's seed alone.
        save: a file for the final weights, relative to the trial's folder.
        data: a folder of data sets with CIFAR-10, an own folder of pictures, or a data set of
            torchvision: `torchvision:NAME` or `torchvision:NAME:FOLDER`.
    """

    epochs: int
    image_size: int
    width: float
    n_validation: float
    n_validation_early: int | None = None
    n_train: int | None = None
    split_seed: int = 0
    train_on: str = "train"
    objective: str = "validation"
    evaluate_test: bool = False
    crop_padding: int = 4
    cutout: int = 0
    mixup: float = 0.0
    schedule: str = "step"
    momentum: float = 0.9
    weight_decay: float = 0.0005
    warmup_share: float = 0.05
    label_smoothing: float = 0.0
    ema_decay: float = 0.0
    precision: str = "auto"
    compile: bool = False
    ranks: int | None = None
    threads: int | None = None
    checkpoint_every_s: float = 60.0
    checkpoint_every_epochs: int = 1
    is_tensorboard: bool = True
    seed: int | None = None
    save: str | None = None
    data: str | None = None

    def __post_init__(self) -> None:
        for name, low, high in RANGES:
            _check_range(name, getattr(self, name), low, high)
        for name, words in WORDS.items():
            if getattr(self, name) not in words:
                raise InvalidOption(
                    f"{name} must be one of {', '.join(words)}, got {getattr(self, name)!r}"
                )
        for name in ("data", "save"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value):
                raise InvalidOption(f"{name} must be a path, got {value!r}")
        if self.n_validation >= 1 and self.n_validation != int(self.n_validation):
            raise InvalidOption(
                f"n_validation must be a whole number or a share below 1, got {self.n_validation}"
            )
        is_scored = self.train_on == "train" and self.objective == "validation"
        if is_scored and self.n_validation == 0:
            raise InvalidOption("n_validation must be positive where validation is the objective")

    @property
    def has_test(self) -> bool:
        """Whether the test set is used at all."""
        return self.evaluate_test or self.objective == "test"


RANGES: tuple[tuple[str, float, float], ...] = (
    ("epochs", 1, 100_000),
    ("image_size", 8, LARGEST_IMAGE),
    ("width", 0.01, 1.0),
    ("n_validation", 0, 10**9),
    ("n_validation_early", 1, 10**9),
    ("n_train", 2, 10**9),
    ("split_seed", 0, 2**63),
    ("evaluate_test", False, True),
    ("crop_padding", 0, 16),
    ("cutout", 0, 32),
    ("mixup", 0.0, 100.0),
    ("momentum", 0.0, 0.9999),
    ("weight_decay", 0.0, 1.0),
    ("warmup_share", 0.0, 1.0),
    ("label_smoothing", 0.0, 0.99),
    ("ema_decay", 0.0, 0.999999),
    ("compile", False, True),
    ("ranks", 1, 1024),
    ("threads", 1, 1024),
    ("checkpoint_every_s", 0.0, math.inf),
    ("checkpoint_every_epochs", 0, 100_000),
    ("is_tensorboard", False, True),
    ("seed", 0, 2**63 - 1),
)
WORDS = {
    "train_on": ("train", "train+validation"),
    "objective": ("validation", "test"),
    "schedule": ("step", "cosine", "one_cycle"),
    "precision": ("auto", "float32", "float64", "bfloat16", "float16"),
}
KINDS: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,)}


def recipe_names() -> list[str]:
    """Names of the recipes that are shipped."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load_recipe(options: Mapping[str, Any]) -> Recipe:
    """The recipe with the name `options["recipe"]` (default `paper`),
    overridden by the other options.

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
    kind, _, none = Recipe.__annotations__[name].partition(" | ")
    if none and value is None:
        return
    is_right = isinstance(value, KINDS[kind]) and (kind == "bool" or not isinstance(value, bool))
    if not is_right or not low <= value <= high:  # type: ignore[operator]
        raise InvalidOption(f"{name} must be of type {kind} in {low}..{high}, got {value!r}")
