"""Repeated measurement of the numbers on the model card of an exported folder.

`python -m trainers.evaluate best/` scores the test set with the stored weights, counts
parameters and operations, and compares the ONNX file with PyTorch; `--retrain INTO` trains
the network again with the stored options and seed. The numbers are those of the one training
whose weights are stored.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trainers import onnx_file
from trainers.augment import shrink
from trainers.dataset import open_collection
from trainers.device import set_up
from trainers.export import measure
from trainers.network import Classifier, NetworkError, load
from trainers.recipe import load_recipe
from trainers.session import LocalSession
from trainers.sources import DataError

BATCH = 500
TOLERANCE = 2e-3
"""Relative, for accuracies that were measured in another precision or on another device."""


def score(classifier: Classifier, data: str | None = None) -> float:
    """Accuracy on all pictures of the test set."""
    whole = open_collection(data, classifier.image_size)
    images = shrink(torch.from_numpy(np.array(whole.arrays.test_x)), classifier.image_size)
    labels = torch.from_numpy(np.array(whole.arrays.test_y)).long()
    right = 0
    with torch.inference_mode():
        for x, y in zip(images.split(BATCH), labels.split(BATCH), strict=True):
            x = x.float().contiguous(memory_format=torch.channels_last)
            right += int((classifier(x).argmax(1) == y).sum())
    return right / len(labels)


def regenerate(folder: Path) -> dict[str, tuple[Any, Any]]:
    """Each number of the card, and the same measured now: (then, now)."""
    classifier = load(folder)
    training: Mapping[str, Any] = classifier.about["training"]
    set_up(load_recipe(training["options"]))
    then = training["metrics"]
    facts = measure(folder)
    found: dict[str, tuple[Any, Any]] = {
        name: (then.get(f"trial_{name}", then.get(name)), facts[name])
        for name in ("params", "flops")
    }
    if "test_accuracy" in then:
        accuracy = score(classifier, training["options"].get("data"))
        found["test_accuracy"] = (then["test_accuracy"], accuracy)
    if (folder / onnx_file.ONNX_FILE).exists():
        found["onnx_difference"] = (f"<= {onnx_file.TOLERANCE:g}", _difference(classifier, folder))
    found["latency_ms"] = ("see the card", facts["latency_ms"])
    return found


def _difference(classifier: Classifier, folder: Path) -> float | str:
    """The largest difference between the logits of the ONNX file and of
    PyTorch, or why there is none.
    """
    try:
        return onnx_file.compare(classifier, folder / onnx_file.ONNX_FILE)
    except onnx_file.OnnxError as error:
        return str(error)


def retrain(folder: Path, into: Path) -> tuple[Any, Any]:
    """The metric of a new training with the stored options and seed: (then, now)."""
    from trainers.families import family
    from trainers.train import train_network

    about = load(folder).about
    training = about["training"]
    # The stored seed is the one that the training used: no option may change it again.
    options = {name: value for name, value in training["options"].items() if name != "seed"}
    session = LocalSession(into, training["seed"], options)
    train_network(about["config"], session, family(about.get("family", "blocks")))
    name = "test_accuracy" if "test_accuracy" in training["metrics"] else "val_accuracy"
    return training["metrics"][name], session.reports[-1][name]


def main(words: list[str] | None = None) -> int:
    """Command line; exit code 0 if the numbers are those of the card, 1 if
    not, 2 without a network.
    """
    parser = argparse.ArgumentParser(prog="python -m trainers.evaluate", description=__doc__)
    parser.add_argument("folder", type=Path, help="such as runs/first/best")
    parser.add_argument("--retrain", type=Path, metavar="INTO", help="a new folder to train in")
    given = parser.parse_args(words)
    try:
        found = regenerate(given.folder)
        if given.retrain is not None:
            found["retrained"] = retrain(given.folder, given.retrain)
    except (NetworkError, DataError) as error:
        print(error, file=sys.stderr)
        return 2
    training = load(given.folder).about["training"]
    print(
        f"of the training with seed {training['seed']}; other seeds of the card have other numbers"
    )
    for name, (then, now) in found.items():
        print(f"{name:<16} card {then}   now {now}")
    return 0 if _agree(found, _is_exact(training["metrics"])) else 1


def _is_exact(then: Mapping[str, Any]) -> bool:
    """Whether the training computed as this command does: in float32 on a CPU."""
    return then.get("device") == "cpu" and then.get("precision") == "float32"


def _agree(found: Mapping[str, tuple[Any, Any]], is_exact: bool) -> bool:
    """Whether counts are equal, accuracies close, and the ONNX file is within its tolerance."""
    counts = [found[name] for name in ("params", "flops")]
    scores = [found[name] for name in ("test_accuracy", "retrained") if name in found]
    _, difference = found.get("onnx_difference", (None, 0.0))
    return (
        all(then == now for then, now in counts)
        and all(_is_near(then, now, is_exact) for then, now in scores)
        and isinstance(difference, float)
        and difference <= onnx_file.TOLERANCE
    )


def _is_near(then: float, now: float, is_exact: bool) -> bool:
    return then == now if is_exact else abs(then - now) <= TOLERANCE * abs(then)


if __name__ == "__main__":
    sys.exit(main())
