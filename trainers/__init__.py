"""Trainers: training of a configuration in a session that receives the metrics.

This package knows neither the search nor the cluster. Public are the module `cifar10`,
which a sweep names as its trainer, and `load`, which loads the network that `nasbo
finalize` wrote to a folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainers.network import Classifier

__all__ = ["cifar10", "load"]


def load(folder: Path | str) -> Classifier:
    """The network of a folder such as `best/`, which classifies images
    with pixels from 0 to 255.
    """
    from trainers import network  # torch is needed only from here on

    return network.load(folder)
