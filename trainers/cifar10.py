"""The CIFAR-10 trainer's face: name `trainers.cifar10:train` as a sweep's trainer."""

from trainers.cost import check, fingerprint
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
    "provenance",
    "summary",
    "train",
]

METRIC = "val_accuracy"
MODE = "max"
