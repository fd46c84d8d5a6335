"""Networks that are measured, drawn with a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from trainers.cost import summary

N_DRAWN = 50


@dataclass(frozen=True)
class Measured:
    """One network at one size, with a name."""

    name: str
    config: dict[str, Any]
    recipe: str

    @property
    def label(self) -> str:
        """The name, the operations and the FLOPs."""
        ops = "".join(str(op) for op in self.config["conv_op"])
        return f"{self.name} (conv_op {ops}, {summary(self.config)['flops'] / 1e6:.0f} MFLOP)"


def networks(batch_size: int, seed: int = 0) -> list[Measured]:
    """Smallest, median and large of 50 random networks by FLOPs, in full size and in the proxy.

    The networks of one dense operation alone, plain convolutions or residual blocks, are the
    medians of 50 such networks.
    """
    drawn = _by_cost(batch_size, seed)
    places = {"smallest": 0, "median": N_DRAWN // 2, "large": N_DRAWN * 9 // 10}
    named = {name: drawn[place] for name, place in places.items()}
    dense = {
        f"all {word}": _by_cost(batch_size, seed, op)[N_DRAWN // 2]
        for word, op in (("convolutions", 0), ("residual blocks", 3))
    }
    return [
        *[Measured(name, config, "paper") for name, config in {**named, **dense}.items()],
        *[Measured(name, config, "proxy") for name, config in named.items()],
    ]


def _by_cost(batch_size: int, seed: int, op: int | None = None) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    drawn = [_sample(draw, batch_size, op) for _ in range(N_DRAWN)]
    return sorted(drawn, key=lambda config: float(summary(config)["flops"]))


def _sample(draw: random.Random, batch_size: int, op: int | None) -> dict[str, Any]:
    """A configuration of the space `nas_cifar10`."""
    n = draw.randint(4, 7)
    ops = [draw.randint(0, 3) for _ in range(n)]
    return {
        "nums_block": n,
        "conv_op": ops if op is None else [op] * n,
        "expand_ratio": [draw.choice([5, 6]) for _ in range(n)],
        "seratio": [draw.choice([0, 8, 16]) for _ in range(n)],
        "kernel_size": [draw.choice([3, 5]) for _ in range(n)],
        "nums_layer": [draw.randint(0, 2) for _ in range(n)],
        "nums_channel": [draw.choice([1, 1.25, 1.3]) for _ in range(n)],
        "stride_layer": draw.choice([43, 44]),
        "learning_rate": 0.1,
        "step_size": 80,
        "batch_size": batch_size,
    }
