"""Number of trials that fit on a node, from its resources and those of a trial."""

from __future__ import annotations

import os
from collections.abc import Mapping


def room(have: Mapping[str, float], needs: Mapping[str, float]) -> int:
    """Number of trials that fit on a node; a fraction of a GPU never spans two GPUs."""
    counts = []
    for name, need in needs.items():
        amount = have.get(name, 0.0)
        if name == "GPU" and need < 1:
            counts.append(int(amount) * int(1 / need + 1e-9))
        else:
            counts.append(int(amount / need + 1e-9))
    return min(counts)


def room_here(needs: Mapping[str, float]) -> int:
    """Number of trials that fit on this machine, by cores and visible GPUs only."""
    have = known_here(needs)
    return room(have, {name: need for name, need in needs.items() if name in have})


def known_here(needs: Mapping[str, float]) -> dict[str, float]:
    """Numbers of cores and, if needed, of visible GPUs; other resources are known to Ray only."""
    have = {"CPU": float(os.cpu_count() or 1)}
    return have | {"GPU": float(n_gpus())} if "GPU" in needs else have


def n_gpus() -> int:
    """Number of GPUs that a process on this machine sees."""
    import torch  # takes seconds, which sweeps without GPUs need not wait for

    return torch.cuda.device_count()


def gpu_names() -> list[str]:
    """Names of the visible GPUs."""
    import torch

    return [torch.cuda.get_device_name(index) for index in range(n_gpus())]
