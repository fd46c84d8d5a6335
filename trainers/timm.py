"""Trainer of timm's networks: name `trainers.timm:train` as a sweep's trainer.

A configuration has `model`, a name of `timm.list_models()`; `learning_rate`, `batch_size`,
`step_size`, `optimizer` (`sgd` or `adamw`) and `weight_decay` say how it is trained, where they are
there; all else goes to `timm.create_model` as it is. Options are the recipes of the shipped trainer
and their keys, but for `width`, which is for block networks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainers import timm_networks
from trainers.architecture import Config, check_batch
from trainers.cifar10 import METRIC, MODE, RESUMES, prepare, steps
from trainers.dataset import n_trained
from trainers.export import export, final_metric, final_options, provenance
from trainers.forecast import counts, n_at_once, precision
from trainers.memory import memory_of
from trainers.recipe import InvalidOption, load_recipe
from trainers.session import Session
from trainers.timm_networks import fingerprint
from trainers.train import Diverged, train_network
from trainers.train import check_options as check_recipe_options

__all__ = [
    "METRIC",
    "MODE",
    "RESUMES",
    "Diverged",
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
    "train",
]


def train(config: Config, session: Session) -> None:
    """Trains one network and reports after every epoch, as `trainers.cifar10:train` does."""
    timm_networks.check(config)
    train_network(config, session, timm_networks.TIMM)


def summary(config: Config, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What is known of a configuration beforehand.

    Args:
        config: a configuration with a `model`.
        options: of a sweep; without them the network is described for CIFAR-10.

    Returns:
        `params` and `flops`, and with options the `memory_bytes` of its training.
    """
    recipe = load_recipe(options or {})
    n_classes, _ = counts(recipe.data, recipe.image_size) if options else (10, 0)
    found = timm_networks.summary(config, 1.0, n_classes, recipe.image_size)
    sizes = {"params": found["params"], "flops": found["flops"]}
    if options is None:
        return sizes
    batch = n_at_once(timm_networks.complete(config), recipe)
    return {**sizes, "memory_bytes": memory_of(found, recipe, batch, precision(recipe))}


def check(config: Config, options: Mapping[str, Any] | None = None) -> None:
    """Raises `InvalidArchitecture` for configurations that cannot be built or trained."""
    timm_networks.check(config)
    recipe = load_recipe(options or {})
    if options is None:
        timm_networks.summary(config, 1.0, 10, recipe.image_size)
        return
    n_classes, n_pictures = counts(recipe.data, recipe.image_size)
    timm_networks.summary(config, 1.0, n_classes, recipe.image_size)
    whole = timm_networks.complete(config)
    check_batch(whole, n_trained(recipe, n_pictures), recipe.ranks or 1)


def check_options(options: Mapping[str, Any]) -> None:
    """Raises `InvalidOption` or `DataError` for options that no trial could be trained with."""
    timm_networks.require_timm()
    if "width" in options:
        raise InvalidOption("width is for block networks; timm's have arguments of their own")
    check_recipe_options(options)
