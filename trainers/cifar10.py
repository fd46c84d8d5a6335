"""The CIFAR-10 trainer's face: name `trainers.cifar10:train` as a sweep's trainer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainers import data
from trainers.cost import check, fingerprint, summary
from trainers.train import Diverged, train

__all__ = ["METRIC", "MODE", "Diverged", "check", "fingerprint", "prepare", "summary", "train"]

METRIC = "val_accuracy"
MODE = "max"


def prepare(options: Mapping[str, Any]) -> None:
    """Makes sure that CIFAR-10 is on this node, where `$NASBO_DATA` or the option `data` says."""
    data.prepare(options.get("data"))
