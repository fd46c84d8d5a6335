"""Parameters, FLOPs and canonical hash of a configuration, without building its network.

FLOPs are two per multiply-add of convolutions and linear layers, in a forward pass for one image;
batch normalisation, activation functions and sums are not counted, as is usual. Activations are the
numbers that the forward pass of one image keeps for the backward pass.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from trainers.architecture import LARGEST_IMAGE, BlockRow, Config, check, rows, stem_channels

__all__ = ["check", "fingerprint", "sizes", "summary"]

FEATURES = ("params", "flops", "layers", "receptive_field")
"""Numbers that tell a search about results before a training."""
DEPTHS = {"conv": (1, 1), "separable": (2, 1), "inverted": (3, 1), "resnet": (2, 2)}
"""Convolutions of a layer one behind the other, and how many of them look beyond one pixel."""
FULL_SIZE = 32
"""Side of the images for which the full architecture is described, unless the images are larger."""


@dataclass(frozen=True)
class Cost:
    """Trainable parameters and multiply-adds for one image."""

    params: int = 0
    macs: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.params + other.params, self.macs + other.macs)


def summary(
    config: Config, width: float = 1.0, n_classes: int = 10, image_size: int = 32
) -> dict[str, Any]:
    """Size and cost of a network, without building it.

    Returns:
        `params`, `flops`, `activations`, `layers` (convolutions one behind the other),
        `receptive_field` (its side in pixels), and `rows`: one plain dictionary per part (stem,
        blocks, head) with the columns of `BlockRow`, `out_size`, `params` and `flops`.
    """
    stem = stem_row(stem_channels(width), 1, image_size)
    return describe(stem, rows(config, width, image_size), n_classes)


def stem_row(channels: int, stride: int, image_size: int) -> BlockRow:
    """The first convolution as a row."""
    return BlockRow("conv", 3, stride, 3, channels, 1, 1, 0, image_size)


def describe(stem: BlockRow, table: Sequence[BlockRow], n_classes: int) -> dict[str, Any]:
    """The summary of a network that is given by its rows."""
    parts = [
        _drawn({**asdict(stem), "op": "stem"}, stem.out_size, _block_cost(stem)),
        *[_drawn(asdict(row), row.out_size, _block_cost(row)) for row in table],
        _head(table[-1], n_classes),
    ]
    return {
        "params": sum(part["params"] for part in parts),
        "flops": sum(part["flops"] for part in parts),
        "activations": _activations(stem, table),
        **_depth(stem, table),
        "rows": parts,
    }


def sizes(config: Config, width: float, n_classes: int, image_size: int) -> dict[str, int]:
    """Parameters and FLOPs of the full architecture, and of the network that is trained.

    Returns:
        `params` and `flops` at the full width and size, `trial_params` and `trial_flops` as given.
    """
    return sizes_by(summary, config, width, n_classes, image_size)


def sizes_by(
    describe_config: Callable[[Config, float, int, int], dict[str, Any]],
    config: Config,
    width: float,
    n_classes: int,
    image_size: int,
) -> dict[str, int]:
    """The same by any summary."""
    whole = describe_config(config, 1.0, n_classes, max(FULL_SIZE, image_size))
    trial = describe_config(config, width, n_classes, image_size)
    return {
        "params": whole["params"],
        "flops": whole["flops"],
        "trial_params": trial["params"],
        "trial_flops": trial["flops"],
    }


def fingerprint(config: Config) -> str:
    """Canonical hash, equal only for configurations whose training is the same computation.

    Values without effect are left out: the expansion of other operations, multipliers that
    round to the same channels, squeeze ratios that give the same hidden width. This holds for
    every recipe: a width below 1 and images smaller than the largest can only make more
    configurations equal, never fewer.
    """
    architecture = [
        [row.op, row.kernel, row.stride, row.out_channels, row.layers, row.expansion]
        + [row.squeeze_channels(layer) for layer in range(row.layers)]
        for row in rows(config, image_size=LARGEST_IMAGE)
    ]
    training = [float(config["learning_rate"]).hex(), int(config["step_size"])]
    content = json.dumps([architecture, training, int(config["batch_size"])])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _depth(stem: BlockRow, table: Sequence[BlockRow]) -> dict[str, int]:
    """Convolutions one behind the other, and the side of what one place of the last map sees."""
    n_layers, field, jump = 1, stem.kernel, stem.stride
    for row in table:
        n_each, n_seeing = DEPTHS[row.op]
        n_layers += n_each * row.layers
        for layer in range(row.layers):
            field += (row.kernel - 1) * jump
            jump *= row.stride if layer == 0 else 1
            field += (n_seeing - 1) * (row.kernel - 1) * jump
    return {"layers": n_layers, "receptive_field": field}


def _convolution(inputs: int, outputs: int, kernel: int, size: int, groups: int = 1) -> Cost:
    """A convolution without bias and its batch normalisation; `size` is the side of the output."""
    weights = kernel * kernel * inputs // groups * outputs
    return Cost(weights + 2 * outputs, weights * size * size)


def _linear(inputs: int, outputs: int) -> Cost:
    return Cost((inputs + 1) * outputs, inputs * outputs)


def _squeeze(channels: int, hidden: int) -> Cost:
    return _linear(channels, hidden) + _linear(hidden, channels) if hidden else Cost()


def _block_cost(row: BlockRow) -> Cost:
    return sum((_layer_cost(row, layer) for layer in range(row.layers)), Cost())


def _layer_cost(row: BlockRow, layer: int) -> Cost:
    inputs, outputs, size = row.inputs(layer), row.out_channels, row.out_size
    before = row.image_size if layer == 0 else size
    hidden = row.squeeze_channels(layer)
    if row.op == "conv":
        return _convolution(inputs, outputs, row.kernel, size) + _squeeze(outputs, hidden)
    if row.op == "separable":
        depthwise = _convolution(inputs, inputs, row.kernel, size, inputs)
        return depthwise + _convolution(inputs, outputs, 1, size) + _squeeze(outputs, hidden)
    if row.op == "inverted":
        wide = inputs * row.expansion
        expand = _convolution(inputs, wide, 1, before)
        depthwise = _convolution(wide, wide, row.kernel, size, wide)
        return expand + depthwise + _squeeze(wide, hidden) + _convolution(wide, outputs, 1, size)
    is_same = inputs == outputs and before == size
    shortcut = Cost() if is_same else _convolution(inputs, outputs, 1, size)
    first = _convolution(inputs, outputs, row.kernel, size)
    second = _convolution(outputs, outputs, row.kernel, size)
    return first + second + _squeeze(outputs, hidden) + shortcut


def _activations(stem: BlockRow, table: Sequence[BlockRow]) -> int:
    """A convolution keeps its input; so does a normalisation, which is
    one feature map more each.
    """
    kept = sum(_kept(row, layer) for row in table for layer in range(row.layers))
    return kept + 3 * stem.image_size**2 + 2 * stem.out_channels * stem.out_size**2


def _kept(row: BlockRow, layer: int) -> int:
    inputs, outputs, size = row.inputs(layer), row.out_channels, row.out_size
    before = row.image_size if layer == 0 else size
    is_gated = row.squeeze_channels(layer) > 0
    if row.op == "conv":
        return (2 + is_gated) * outputs * size**2
    if row.op == "separable":
        return (2 * inputs + (2 + is_gated) * outputs) * size**2
    if row.op == "inverted":
        wide = inputs * row.expansion
        return 2 * wide * before**2 + ((2 + is_gated) * wide + 2 * outputs) * size**2
    is_projected = inputs != outputs or before != size
    return (4 + is_gated + is_projected) * outputs * size**2


def _drawn(columns: dict[str, Any], out_size: int, cost: Cost) -> dict[str, Any]:
    return {**columns, "out_size": out_size, "params": cost.params, "flops": 2 * cost.macs}


def _head(last: BlockRow, n_classes: int) -> dict[str, Any]:
    row = BlockRow("head", 1, 1, last.out_channels, n_classes, 1, 1, 0, last.out_size)
    return _drawn(asdict(row), 1, _linear(last.out_channels, n_classes))
