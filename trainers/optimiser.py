"""Optimisers by what a configuration and a recipe say."""

from __future__ import annotations

import torch
from torch import nn

from trainers.architecture import Config
from trainers.recipe import Recipe


def make_optimiser(network: nn.Module, recipe: Recipe, config: Config) -> torch.optim.Optimizer:
    """SGD with Nesterov momentum, or AdamW; biases and normalisation do not decay."""
    decay = config.get("weight_decay", recipe.weight_decay)
    decaying = [weight for weight in network.parameters() if weight.ndim > 1]
    others = [weight for weight in network.parameters() if weight.ndim <= 1]
    groups = [
        {"params": decaying, "weight_decay": decay},
        {"params": others, "weight_decay": 0.0},
    ]
    if config.get("optimizer") == "adamw":
        return torch.optim.AdamW(groups, lr=0.1, fused=True)
    return torch.optim.SGD(
        groups, lr=0.1, momentum=recipe.momentum, nesterov=recipe.momentum > 0, fused=True
    )
