"""Families of networks: what the training loop must know of those that it trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from trainers import architecture, blocks, cost, mnasnet, mnasnet_blocks, mnasnet_cost, tabulate
from trainers.architecture import Config

Described = Callable[[Config, float, int, int], dict[str, Any]]


def _as_it_is(config: Config) -> Config:
    return config


def _any(config: Config) -> None:
    """The check of a family whose networks can all be built, or which checks them itself."""


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
        check: raises `InvalidArchitecture` for what can neither be built nor trained.
        tabulate: numbers of the summary for many configurations at once, from their values by
            parameter; `None` if the family has no such function.
    """

    name: str
    build: Callable[[Config, float, int, int], nn.Module]
    summary: Described
    sizes: Described
    fingerprint: Callable[[Config], str]
    complete: Callable[[Config], Config] = _as_it_is
    check: Callable[[Config], None] = _any
    tabulate: Callable[[Mapping[str, Any], float, int, int], dict[str, Any]] | None = None


BLOCKS = Family(
    "blocks",
    blocks.build,
    cost.summary,
    cost.sizes,
    cost.fingerprint,
    check=architecture.check,
    tabulate=tabulate.sizes_of,
)
MNASNET = Family(
    "mnasnet",
    mnasnet_blocks.build,
    mnasnet_cost.summary,
    mnasnet_cost.sizes,
    mnasnet_cost.fingerprint,
    check=mnasnet.check,
    tabulate=mnasnet_cost.sizes_of,
)
OWN = {one.name: one for one in (BLOCKS, MNASNET)}
"""Families that `trainers.cifar10` trains."""


def family(name: str) -> Family:
    """A family by its name; timm is imported only where it is asked for."""
    if name in OWN:
        return OWN[name]
    from trainers import timm_networks

    families = {**OWN, timm_networks.TIMM.name: timm_networks.TIMM}
    if name not in families:
        raise ValueError(f"a family must be one of {', '.join(families)}, got {name!r}")
    return families[name]


def family_of(config: Mapping[str, Any]) -> Family:
    """The family of a configuration, or of the values of many, by its parameters."""
    is_mapping = isinstance(config, Mapping)
    return MNASNET if is_mapping and mnasnet.MARK in config else BLOCKS
