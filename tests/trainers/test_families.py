"""Families of networks: the training loop knows those that it trains by a few functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from trainers import cost
from trainers.families import BLOCKS, Family, family
from trainers.optimiser import make_optimiser
from trainers.recipe import load_recipe
from trainers.session import LocalSession
from trainers.train import train_network
from trainers.training import CHECKPOINT

Make = Callable[..., dict[str, Any]]
OPTIONS = {"recipe": "tiny", "is_tensorboard": False}


def build(config: Any, width: float, n_classes: int, image_size: int) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(3 * image_size**2, n_classes, bias=config["bias"])
    )


def described(config: Any, width: float, n_classes: int, image_size: int) -> dict[str, Any]:
    params = 3 * image_size**2 * n_classes + (n_classes if config["bias"] else 0)
    return {"params": params, "flops": 2 * params, "activations": 3 * image_size**2}


LINEAR = Family(
    "linear", build, described, described, str,
    lambda config: {"batch_size": 50, "learning_rate": 0.01, "step_size": 100, **config},
)  # fmt: skip


def test_blocks_are_found_by_name(uniform_config: Make) -> None:
    assert family("blocks") is BLOCKS
    config = uniform_config(0)
    assert BLOCKS.summary(config, 1.0, 10, 32) == cost.summary(config)
    assert BLOCKS.complete(config) is config
    with pytest.raises(
        ValueError, match="a family must be one of blocks, mnasnet, timm, got 'trees'"
    ):
        family("trees")


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_the_loop_trains_any_network_and_a_restart_ends_with_the_same_bits(
    optimizer: str, tmp_path: Path, cache: Path
) -> None:
    config = {"bias": True, "optimizer": optimizer}
    whole = LocalSession(tmp_path / "whole", 3, OPTIONS)
    train_network(config, whole, LINEAR)
    assert whole.reports[-1]["params"] == 3 * 64 * 10 + 10
    paused = LocalSession(tmp_path / "paused", 3, OPTIONS, until=1)
    train_network(config, paused, LINEAR)
    assert len(paused.reports) == 1
    on = LocalSession(tmp_path / "paused", 3, OPTIONS)
    train_network(config, on, LINEAR)
    ends = [torch.load(tmp_path / name / CHECKPOINT)["network"] for name in ("whole", "paused")]
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])
    assert on.reports[-1]["val_loss"] == whole.reports[-1]["val_loss"]


def test_configurations_may_say_how_weights_decay() -> None:
    network, recipe = nn.Linear(4, 4), load_recipe(OPTIONS)
    usual = make_optimiser(network, recipe, {})
    assert isinstance(usual, torch.optim.SGD)
    assert [group["weight_decay"] for group in usual.param_groups] == [recipe.weight_decay, 0.0]
    named = make_optimiser(network, recipe, {"weight_decay": 0.3, "optimizer": "adamw"})
    assert isinstance(named, torch.optim.AdamW)
    assert [group["weight_decay"] for group in named.param_groups] == [0.3, 0.0]


def test_timm_is_needed_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from trainers import timm
    from trainers.recipe import InvalidOption

    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(InvalidOption, match=r"needs the package timm: pip install 'nasbo\[timm\]'"):
        timm.check_options(OPTIONS)
