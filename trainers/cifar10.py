"""The CIFAR-10 trainer's face: name `trainers.cifar10:train` as a sweep's trainer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainers import data
from trainers.cost import check, fingerprint
from trainers.dataset import is_cifar10
from trainers.export import export, final_metric, final_options, provenance
from trainers.forecast import calibrate, summary
from trainers.train import Diverged, check_options, train

__all__ = [
    "METRIC",
    "MODE",
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
    "summary",
    "train",
]

METRIC = "val_accuracy"
MODE = "max"


def prepare(options: Mapping[str, Any]) -> None:
    """Makes sure that CIFAR-10 is on this node, unless the option `data` names own pictures."""
    if is_cifar10(options.get("data")):
        data.prepare(options.get("data"))
