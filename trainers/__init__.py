"""Trainers: a configuration and a session come in, reported metrics come out.

This package knows neither the searcher nor the cluster. `trainers.cifar10` is the face to use;
`trainers.load` gives back the network that `nasbo finalize` left in a folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainers.network import Classifier


def load(folder: Path | str) -> Classifier:
    """The network of a folder such as `best/`, ready to classify pictures of pixels 0 to 255."""
    from trainers import network  # torch is needed only from here on

    return network.load(folder)
