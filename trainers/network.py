"""Network with its weights, loaded from a folder that `trainers.export` wrote."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor, nn

from trainers.families import Family, family

ARCHITECTURE_FILE, WEIGHTS_FILE = "architecture.yaml", "weights.safetensors"


class NetworkError(RuntimeError):
    """A folder has no network that can be loaded; the message names the file."""


class Classifier(nn.Module):
    """A network with its normalisation: maps raw pixels to logits.

    Args:
        about: configuration, width, image size, classes and scale, as in `architecture.yaml`.

    Attributes:
        classes: names, in the order of the logits.
        image_size: side of the images in pixels.
        about: content of the file.
    """

    factor: Tensor
    shift: Tensor

    def __init__(self, about: Mapping[str, Any]) -> None:
        super().__init__()
        self.about = dict(about)
        self.classes = tuple(about["classes"])
        self.image_size = int(about["image_size"])
        width = float(about["width"])
        self.family: Family = family(about.get("family", "blocks"))
        # Weights come from the file: a network that begins with others need not fetch them.
        config = {**about["config"], "pretrained": False} if _fetches(about) else about["config"]
        self.network = self.family.build(config, width, len(self.classes), self.image_size)
        mean, deviation = (torch.tensor(part)[:, None, None] for part in about["scale"])
        self.register_buffer("factor", 1.0 / deviation, persistent=False)
        self.register_buffer("shift", -mean / deviation, persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Pixels 0 to 255 of any type, `(batch, 3, size, size)`, to logits `(batch, n_classes)`."""
        logits: Tensor = self.network(images.float() * self.factor + self.shift)
        return logits


def _fetches(about: Mapping[str, Any]) -> bool:
    return bool(about["config"].get("pretrained", False))


def load(folder: Path | str) -> Classifier:
    """The network of a folder such as `best/`, ready to classify.

    Raises:
        NetworkError: a file is missing or damaged.
    """
    from safetensors.torch import load_file

    place = Path(folder)
    try:
        about = yaml.safe_load((place / ARCHITECTURE_FILE).read_text(encoding="utf-8"))
        classifier = Classifier(about)
        classifier.network.load_state_dict(load_file(place / WEIGHTS_FILE))
    except Exception as error:
        raise NetworkError(
            f"{place}: must hold {ARCHITECTURE_FILE} and {WEIGHTS_FILE} of one network: {error}"
        ) from error
    return classifier.eval().to(memory_format=torch.channels_last)
