"""CIFAR-10 trainer; name `trainers.cifar10:train` as a sweep's trainer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainers import data
from trainers.dataset import is_cifar10, open_collection
from trainers.export import export, final_metric, final_options, provenance
from trainers.families import family_of
from trainers.forecast import calibrate, check, summary, tabulate
from trainers.recipe import load_recipe
from trainers.torchvision_sets import is_named, open_torchvision
from trainers.train import Diverged, check_options, train

__all__ = [
    "METRIC",
    "MODE",
    "RESUMES",
    "Diverged",
    "calibrate",
    "check",
    "check_options",
    "export",
    "final_metric",
    "final_options",
    "fingerprint",
    "prepare",
    "provenance",
    "steps",
    "summary",
    "tabulate",
    "train",
]

METRIC = "val_accuracy"
MODE = "max"
RESUMES = True


def fingerprint(config: Mapping[str, Any]) -> str:
    """Canonical hash, equal only for configurations whose training is the same computation."""
    return family_of(config).fingerprint(config)


def steps(options: Mapping[str, Any]) -> int:
    """Number of epochs of a full training."""
    return load_recipe(options).epochs


def prepare(options: Mapping[str, Any]) -> None:
    """Makes sure that the data are on this node: CIFAR-10, or what `data` names.

    Raises:
        DataError: they are not, and cannot be fetched.
    """
    recipe = load_recipe(options)
    if is_cifar10(recipe.data):
        data.prepare(recipe.data)
    elif is_named(recipe.data):
        open_torchvision(str(recipe.data), recipe.image_size, download=True)
    else:
        open_collection(recipe.data, recipe.image_size)
