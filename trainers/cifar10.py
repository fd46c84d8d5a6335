"""The CIFAR-10 trainer's face: name `trainers.cifar10:train` as a sweep's trainer."""

from trainers.cost import check, fingerprint, summary
from trainers.train import Diverged, check_options, train

__all__ = [
    "METRIC",
    "MODE",
    "Diverged",
    "check",
    "check_options",
    "fingerprint",
    "summary",
    "train",
]

METRIC = "val_accuracy"
MODE = "max"
