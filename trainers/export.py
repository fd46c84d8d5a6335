"""Export of a finished trial: weights, architecture, ONNX file and measured facts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import yaml
from torch.utils.flop_counter import FlopCounterMode

from trainers import onnx_file
from trainers.architecture import Config
from trainers.dataset import content_hash, has_test, open_collection, split
from trainers.network import ARCHITECTURE_FILE, WEIGHTS_FILE, Classifier, load
from trainers.recipe import load_recipe

TRAINED_FILE = "weights.pt"
"""File that the training of a finalist writes to its folder; see the option `save`."""
INHERITED = ("data", "split_seed", "precision", "ranks", "threads", "compile")
"""Options of a search that its finalists keep; the others come from the recipe of the finalists."""
USAGE = """import trainers

network = trainers.load("{folder}")  # pixels (batch, 3, size, size) to logits"""


def final_options(options: Mapping[str, Any], recipe: str | None) -> dict[str, Any]:
    """Options for a finalist of a sweep: training on train and validation images,
    the test set scored once.

    If a user's folder of images has no test set, its validation images are
    held out for the last score.

    Args:
        options: of the sweep.
        recipe: by name; None for `strong`.
    """
    kept = {name: options[name] for name in INHERITED if name in options}
    data = options.get("data")
    is_tested = has_test(data)
    chosen = {
        "recipe": recipe or "strong",
        "train_on": "train+validation" if is_tested else "train",
        "evaluate_test": is_tested,
        "save": TRAINED_FILE,
    }
    load_recipe({**kept, **chosen})
    return {**kept, **chosen}


def final_metric(options: Mapping[str, Any]) -> str:
    """What a finalist is measured by."""
    is_tested = options.get("evaluate_test") or options.get("objective") == "test"
    return "test_accuracy" if is_tested else "val_accuracy"


def provenance(options: Mapping[str, Any]) -> dict[str, Any]:
    """Hashes of the data and of the split that these options train on."""
    recipe = load_recipe(options)
    whole = open_collection(recipe.data, recipe.image_size)
    train, validation = split(whole.arrays.train_y, recipe)
    return {
        "data_hash": whole.data_hash,
        "split_hash": content_hash(train, validation),
        "n_train": len(train),
        "n_validation": len(validation),
        "split_seed": recipe.split_seed,
    }


def export(
    config: Config, trial_folder: Path, folder: Path, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Write a trained network to a folder of its own.

    Args:
        config: the trial's configuration.
        trial_folder: of the trial, which was trained with the option `save`.
        folder: for `weights.safetensors`, `architecture.yaml` and `model.onnx`.
        options: with which it was trained.

    Returns:
        Facts: parameters, FLOPs as counted, latencies on this CPU, the largest difference between
            ONNX and PyTorch, and the commands that use the network and measure its numbers again.
    """
    from safetensors.torch import save_file

    path = trial_folder / str(options.get("save", TRAINED_FILE))
    trained = torch.load(path, map_location="cpu", weights_only=True)
    weights = {name: value.float() if value.is_floating_point() else value
               for name, value in trained["weights"].items()}  # fmt: skip
    save_file({name: value.contiguous() for name, value in weights.items()}, folder / WEIGHTS_FILE)
    about = {
        "family": trained.get("family", "blocks"),
        "config": dict(config),
        "width": trained["width"],
        "image_size": trained["image_size"],
        "classes": list(trained["classes"]),
        "scale": [list(part) for part in trained["scale"]],
        "training": {
            "options": dict(options),
            "seed": trained["metrics"].get("trial_seed"),
            "metrics": trained["metrics"],
        },
    }
    text = yaml.safe_dump(about, sort_keys=False)
    (folder / ARCHITECTURE_FILE).write_text(text, encoding="utf-8")
    return measure(folder) | _onnx(load(folder), folder)


def measure(folder: Path) -> dict[str, Any]:
    """Facts about an exported network that can be measured again."""
    classifier = load(folder)
    about = classifier.about
    size = int(about["image_size"])
    n_classes, describe = len(classifier.classes), classifier.family.summary
    known = describe(about["config"], float(about["width"]), n_classes, size)
    return {
        "params": sum(weight.numel() for weight in classifier.parameters()),
        "flops": known["flops"],
        "flops_counted": _counted_flops(classifier),
        "latency_ms": onnx_file.latency_ms(classifier),
        "weights_sha256": hashlib.sha256((folder / WEIGHTS_FILE).read_bytes()).hexdigest(),
        "usage": USAGE,
        "regenerate": "python -m trainers.evaluate {folder}",
    }


def _onnx(classifier: Classifier, folder: Path) -> dict[str, Any]:
    """The ONNX file's difference and latency; if it cannot be written, the reason."""
    file = folder / onnx_file.ONNX_FILE
    try:
        return {
            "onnx_difference": onnx_file.write_onnx(classifier, file),
            "onnx_latency_ms": onnx_file.onnx_latency_ms(classifier, file),
        }
    except onnx_file.OnnxError as error:
        file.unlink(missing_ok=True)
        return {"onnx_error": str(error)}


def _counted_flops(classifier: Classifier) -> int:
    """FLOPs that PyTorch counts for one image, as a check of the cost model."""
    size = classifier.image_size
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        classifier(torch.zeros(1, 3, size, size))
    return int(counter.get_total_flops())
