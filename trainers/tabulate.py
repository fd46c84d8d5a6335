"""Sizes of many networks at once, by arrays: a search asks for those of thousands of configs.

The same numbers as in `trainers.cost`, whose formulas these are; a test compares both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.architecture import (
    BASE_CHANNELS,
    MINIMUM_MAP,
    MINIMUM_SQUEEZE,
    OPERATIONS,
    stem_channels,
)

Numbers = NDArray[np.int64]
CONV, SEPARABLE, INVERTED, RESNET = range(len(OPERATIONS))
CODES = {name: code for code, name in enumerate(OPERATIONS)}
"""Number of an operation by its name in a row."""


@dataclass
class Totals:
    """Sums over the layers seen so far, shape (n,) each.

    Attributes:
        params: trainable parameters.
        macs: multiply-adds for one picture.
        layers: convolutions on the longest path.
        field: side of the receptive field.
        jump: pixels of the picture between neighbours of the map.
    """

    params: Numbers
    macs: Numbers
    layers: Numbers
    field: Numbers
    jump: Numbers

    def convolve(
        self, inputs: Numbers, outputs: Numbers, kernel: Numbers, size: Numbers,
        groups: Numbers | int = 1, where: NDArray[np.bool_] | bool = True,
    ) -> None:  # fmt: skip
        """Add a convolution without bias and its normalisation, in some of the networks."""
        weights = kernel * kernel * inputs // groups * outputs
        self.params += np.where(where, weights + 2 * outputs, 0)
        self.macs += np.where(where, weights * size * size, 0)

    def connect(self, inputs: Numbers, outputs: Numbers, where: NDArray[np.bool_]) -> None:
        """Add a linear layer, in some of the networks."""
        self.params += np.where(where, (inputs + 1) * outputs, 0)
        self.macs += np.where(where, inputs * outputs, 0)

    def see(self, kernel: Numbers, stride: Numbers, n: Numbers, where: NDArray[np.bool_]) -> None:
        """Widen the receptive field by n convolutions, the first of which has the stride."""
        first = (kernel - 1) * self.jump
        jump = self.jump * np.where(where, stride, 1)
        self.field += np.where(where, first + (n - 1) * (kernel - 1) * jump, 0)
        self.jump = jump


def sizes_of(
    values: Mapping[str, Any], width: float, n_classes: int, image_size: int
) -> dict[str, Numbers]:
    """Parameters, FLOPs, layers and receptive field of networks with equal numbers of blocks.

    Args:
        values: of the NAS space, by parameter, shape (n,), or (n, n_blocks) for those of a block.
        width: factor on all channels.
        n_classes: of the data.
        image_size: side of the picture.

    Returns:
        `params`, `flops`, `layers` and `receptive_field`, shape (n,) each.
    """
    n, n_blocks = np.asarray(values["conv_op"]).shape

    def block_at(index: int, inputs: Numbers, before: Numbers) -> BlockColumns:
        return BlockColumns.of(values, index, n_blocks, width, inputs, before)

    stem = Stem(stem_channels(width), 1, image_size)
    return add_up(stem, [partial(block_at, index) for index in range(n_blocks)], n, n_classes)


@dataclass(frozen=True)
class Stem:
    """The first convolution, the same in all networks."""

    channels: int
    stride: int
    image_size: int


def add_up(
    stem: Stem,
    blocks: Sequence[Callable[[Numbers, Numbers], BlockColumns]],
    n: int,
    n_classes: int,
) -> dict[str, Numbers]:
    """Sizes of n networks.

    Args:
        stem: of all of them.
        blocks: each makes the columns of one block from the channels and the side of the map that
            come in, shape (n,).
        n: number of networks.
        n_classes: of the data.
    """
    ones = np.ones(n, dtype=np.int64)
    total = Totals(0 * ones, 0 * ones, 0 * ones, 0 * ones + 1, ones.copy())
    everywhere = ones > 0
    channels, size = stem.channels * ones, -(-stem.image_size // stem.stride) * ones
    total.convolve(3 * ones, channels, 3 * ones, size)
    total.see(3 * ones, stem.stride * ones, ones, everywhere)
    total.layers += 1
    for block_at in blocks:
        block = block_at(channels, size)
        block.add_to(total)
        channels, size = block.outputs, block.size
    total.connect(channels, n_classes * ones, everywhere)
    return {
        "params": total.params,
        "flops": 2 * total.macs,
        "layers": total.layers,
        "receptive_field": total.field,
    }


@dataclass(frozen=True)
class BlockColumns:
    """One block of all networks, shape (n,) each; `size` is the side of the map that goes out."""

    op: Numbers
    kernel: Numbers
    stride: Numbers
    inputs: Numbers
    outputs: Numbers
    layers: Numbers
    expansion: Numbers
    squeeze: Numbers
    before: Numbers
    size: Numbers

    @classmethod
    def of(
        cls, values: Mapping[str, Any], index: int, n_blocks: int, width: float,
        inputs: Numbers, before: Numbers,
    ) -> BlockColumns:  # fmt: skip
        """A block of the networks, from the channels and the map that come in."""

        def own(name: str) -> NDArray[np.float64]:
            return np.asarray(values[name], dtype=np.float64)[:, index]

        op = own("conv_op").astype(np.int64)
        bits = np.asarray(values["stride_layer"]).astype(np.int64)
        halves = (bits >> (n_blocks - 1 - index) & 1).astype(bool) & (before // 2 >= MINIMUM_MAP)
        stride = np.where(halves, 2, 1)
        full = round_to_8(BASE_CHANNELS[index] * own("nums_channel"))
        expansion = np.ones(len(op))
        if values.get("expand_ratio") is not None:
            given = np.nan_to_num(own("expand_ratio"), nan=1.0)
            expansion = np.where(op == INVERTED, given, 1.0)
        return cls(
            op=op,
            kernel=own("kernel_size").astype(np.int64),
            stride=stride,
            inputs=inputs,
            outputs=round_to_8(full * width),
            layers=1 + own("nums_layer").astype(np.int64),
            expansion=expansion.astype(np.int64),
            squeeze=own("seratio").astype(np.int64),
            before=before,
            size=-(-before // stride),
        )

    def add_to(self, total: Totals) -> None:
        """Add the block's layers to the sums."""
        n_each = np.where(self.op == CONV, 1, np.where(self.op == INVERTED, 3, 2))
        n_seeing = np.where(self.op == RESNET, 2, 1)
        ones = np.ones_like(self.op)
        for layer in range(int(self.layers.max(initial=0))):
            is_there = self.layers > layer
            inputs = self.inputs if layer == 0 else self.outputs
            before = self.before if layer == 0 else self.size
            stride = self.stride if layer == 0 else ones
            self._add_layer(total, inputs, before, is_there)
            total.see(self.kernel, stride, n_seeing, is_there)
            total.layers += np.where(is_there, n_each, 0)

    def _add_layer(
        self, total: Totals, inputs: Numbers, before: Numbers, is_there: NDArray[np.bool_]
    ) -> None:
        kernel, outputs, size, ones = self.kernel, self.outputs, self.size, np.ones_like(self.op)
        where = is_there & (self.op == CONV)
        total.convolve(inputs, outputs, kernel, size, where=where)
        where = is_there & (self.op == SEPARABLE)
        total.convolve(inputs, inputs, kernel, size, inputs, where)
        total.convolve(inputs, outputs, ones, size, where=where)
        where, wide = is_there & (self.op == INVERTED), inputs * self.expansion
        total.convolve(inputs, wide, ones, before, where=where)
        total.convolve(wide, wide, kernel, size, wide, where)
        total.convolve(wide, outputs, ones, size, where=where)
        where = is_there & (self.op == RESNET)
        total.convolve(inputs, outputs, kernel, size, where=where)
        total.convolve(outputs, outputs, kernel, size, where=where)
        differs = (inputs != outputs) | (before != size)
        total.convolve(inputs, outputs, ones, size, where=where & differs)
        self._squeeze(total, np.where(self.op == INVERTED, wide, outputs), is_there)

    def _squeeze(self, total: Totals, channels: Numbers, is_there: NDArray[np.bool_]) -> None:
        hidden = np.maximum(MINIMUM_SQUEEZE, channels // np.maximum(self.squeeze, 1))
        where = is_there & (self.squeeze > 0)
        total.connect(channels, hidden, where)
        total.connect(hidden, channels, where)


def round_to_8(channels: NDArray[np.floating[Any]]) -> Numbers:
    """The nearest multiples of 8, at least 8."""
    rounded: Numbers = np.maximum(8, (channels + 4).astype(np.int64) // 8 * 8)
    return rounded
