"""Memory of a training, known before it begins.

Most of it are the activations that the forward pass keeps for the backward pass, which are known in
closed form: see `trainers.cost.summary`, whose `activations` are numbers per image.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from trainers.device import free_memory
from trainers.recipe import Recipe

COPIES = 3
"""Each weight, its gradient and its momentum."""


class PredictedOutOfMemory(MemoryError):  # noqa: N818, the name says what would happen
    """The training would not fit into the memory of its device, and was not started."""

    cause = "oom"


def memory_of(found: Mapping[str, Any], recipe: Recipe, batch: int, kind: torch.dtype) -> int:
    """Bytes for weights, optimiser and the activations of `batch` pictures.

    Args:
        found: the network's summary, with `params` and `activations`.
        recipe: says whether weights are averaged.
        batch: pictures that one process takes at once.
        kind: of number that is computed with; weights are never smaller than float32.
    """
    copies = COPIES + (recipe.ema_decay > 0)
    own = max(torch.float32.itemsize, kind.itemsize) * copies
    cast = kind.itemsize if kind.itemsize < torch.float32.itemsize else 0  # kept for a whole step
    return (own + cast) * int(found["params"]) + kind.itemsize * batch * int(found["activations"])


def check_memory(
    found: Mapping[str, Any],
    recipe: Recipe,
    batch: int,
    device: torch.device,
    kind: torch.dtype,
) -> int:
    """The predicted bytes of a training, if the device has them.

    Raises:
        PredictedOutOfMemory: it has not; the message has both figures.
    """
    needed, free = memory_of(found, recipe, batch, kind), free_memory(device)
    if free is not None and needed > free:
        raise PredictedOutOfMemory(
            f"a training step of {batch} pictures needs about {needed / 2**30:.2f} GB, "
            f"{device} has {free / 2**30:.2f} GB free"
        )
    return needed
