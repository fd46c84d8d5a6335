"""Checkpoint of a trial: one file, which is either complete or absent."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch


class CheckpointError(RuntimeError):
    """A checkpoint cannot be read or belongs to another trial; the message names the file."""


def save(state: dict[str, Any], path: Path) -> None:
    """Write to a temporary file, flush to the disk, rename atomically: a crash leaves
    the old or the new file.
    """
    fresh = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with fresh.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
    _sync_folder(path.parent)


def load(path: Path, identity: str) -> dict[str, Any] | None:
    """The state in `path`, or None if there is none; loading runs no code from the file.

    Args:
        path: the checkpoint.
        identity: of the trial; a checkpoint with another identity is refused.

    Raises:
        CheckpointError: the file is damaged or of another trial.
    """
    if not path.exists():
        return None
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        found = state["identity"]
    except Exception as error:
        raise CheckpointError(f"{path}: must be a readable checkpoint: {error}") from error
    if found != identity:
        raise CheckpointError(
            f"{path}: is of another configuration, recipe or seed; use a folder of its own.\n"
            f"  expected {identity}\n  got {found}"
        )
    return state


def random_state() -> dict[str, Any]:
    """The state of every global random generator, as tensors and plain values."""
    version, numbers, gauss = random.getstate()
    name, keys, *rest = np.random.get_state()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "python": (version, list(numbers), gauss),
        "numpy": (str(name), [int(key) for key in keys], *[float(value) for value in rest]),
    }


def set_random_state(state: dict[str, Any]) -> None:
    """Set every global random generator to a state from `random_state`."""
    torch.set_rng_state(state["torch"])
    if torch.cuda.is_available() and state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    name, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((name, np.array(keys, np.uint32), int(position), int(has_gauss), cached))


def _sync_folder(folder: Path) -> None:
    """Flush the folder, which makes the rename durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
