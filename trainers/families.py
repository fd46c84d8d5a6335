"""Families of networks: what the training loop must know of those that it trains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from trainers import blocks, cost
from trainers.architecture import Config

Described = Callable[[Config, float, int, int], dict[str, Any]]


def _as_it_is(config: Config) -> Config:
    return config


@dataclass(frozen=True)
class Family:
    """A kind of networks; functions of a configuration, its width, classes and picture size.

    Attributes:
        name: by which exported networks and further processes find it again.
        build: the network, freshly initialised.
        summary: at least `params`, `flops` and `activations` of the network that is trained.
        sizes: numbers for the reports.
        fingerprint: equal only for configurations whose training is the same computation.
        complete: a configuration with all that the loop reads: `batch_size`, `learning_rate` and
            `step_size`; `optimizer` and `weight_decay` may be there.
    """

    name: str
    build: Callable[[Config, float, int, int], nn.Module]
    summary: Described
    sizes: Described
    fingerprint: Callable[[Config], str]
    complete: Callable[[Config], Config] = _as_it_is


BLOCKS = Family("blocks", blocks.build, cost.summary, cost.sizes, cost.fingerprint)


def family(name: str) -> Family:
    """A family by its name; timm is imported only where it is asked for."""
    if name == BLOCKS.name:
        return BLOCKS
    from trainers import timm_networks

    families = {timm_networks.TIMM.name: timm_networks.TIMM}
    if name not in families:
        raise ValueError(f"a family must be one of blocks, {', '.join(families)}, got {name!r}")
    return families[name]
