"""Memory of a training, predicted from its configuration and recipe.

Most of it are the activations that the forward pass keeps for the backward pass, which are known in
closed form: see `trainers.cost.summary`, whose `activations` are numbers per image.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from trainers.architecture import Config
from trainers.cost import summary
from trainers.device import free_memory
from trainers.recipe import Recipe

COPIES = 3
"""Each weight, its gradient and its momentum."""


class PredictedOutOfMemory(MemoryError):  # noqa: N818, the name says what would happen
    """The training would not fit into the memory of its device, and was not started."""

    cause = "oom"


def predict_memory(
    config: Config, recipe: Recipe, batch: int, kind: torch.dtype, n_classes: int = 10
) -> int:
    """Bytes for weights, optimiser and the activations of `batch` images.

    Args:
        config: a configuration of the NAS space.
        recipe: width, size of the images, whether weights are averaged.
        batch: images in a forward pass of one process.
        kind: data type of the computation; weights are never smaller than float32.
        n_classes: of the data.
    """
    found = summary(config, recipe.width, n_classes, recipe.image_size)
    return memory_of(found, recipe, batch, kind)


def memory_of(found: Mapping[str, Any], recipe: Recipe, batch: int, kind: torch.dtype) -> int:
    """The same for a network whose summary is known."""
    copies = COPIES + (recipe.ema_decay > 0)
    own = max(torch.float32.itemsize, kind.itemsize) * copies
    cast = kind.itemsize if kind.itemsize < torch.float32.itemsize else 0  # kept for a whole step
    return (own + cast) * int(found["params"]) + kind.itemsize * batch * int(found["activations"])


def check_memory(
    config: Config,
    recipe: Recipe,
    batch: int,
    device: torch.device,
    kind: torch.dtype,
    n_classes: int = 10,
) -> int:
    """The predicted bytes, if the device has that much free memory.

    Raises:
        PredictedOutOfMemory: it has not; the message has both figures.
    """
    needed, free = predict_memory(config, recipe, batch, kind, n_classes), free_memory(device)
    if free is not None and needed > free:
        raise PredictedOutOfMemory(
            f"a training step of {batch} pictures needs about {needed / 2**30:.2f} GB, "
            f"{device} has {free / 2**30:.2f} GB free"
        )
    return needed
