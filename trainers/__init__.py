"""Trainers: training of a configuration in a session that receives the metrics.

This package knows neither the searcher nor the cluster. Public are the module `cifar10`, the face
to use, the module `timm`, which trains networks of that package, `summarise`, the size and cost of
any network, and `load`, which gives back the network that `nasbo finalize` left in a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, nn

    from trainers.network import Classifier

__all__ = ["cifar10", "load", "summarise"]


def load(folder: Path | str) -> Classifier:
    """The network of a folder such as `best/`, which classifies images
    with pixels from 0 to 255.
    """
    from trainers import network  # torch is needed only from here on

    return network.load(folder)


def summarise(
    network: nn.Module | Callable[[], nn.Module],
    *inputs: Sequence[int] | Tensor,
    device: str = "meta",
) -> dict[str, int]:
    """Parameters, FLOPs and activations of a network per example; see `trainers.summary`."""
    from trainers import summary

    return summary.summarise(network, *inputs, device=device)
