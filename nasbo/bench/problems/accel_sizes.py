"""Parameters and multiply-adds of the networks of Accel-NASBench, from their choices.

Networks of MnasNet's space with the widths of EfficientNet-B0, on ImageNet at 224 pixels. Counted
as in the table: a normalisation counts four operations for each number of its map, an average one
for each number that comes in or goes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

STEM, HEAD, N_CLASSES = 32, 1280, 1000
WIDTHS = (16, 24, 40, 80, 112, 192, 320)
STRIDES = (1, 2, 2, 2, 1, 2, 1)
STEM_SIZE = 112
"""Side of the map behind the stem, which halves pictures of 224 pixels."""
SQUEEZE = 4
"""A squeeze-and-excitation has a quarter of the channels that its layer takes in."""
NORM_OPERATIONS = 4


@dataclass(frozen=True)
class Block:
    """Choices of a block: inverted residuals, the first of them with the block's stride."""

    expansion: int
    kernel: int
    layers: int
    has_squeeze: bool


@dataclass
class Counts:
    """Sums over the layers seen so far."""

    params: int = 0
    macs: int = 0

    def convolve(self, inputs: int, outputs: int, kernel: int, size: int, groups: int = 1) -> None:
        """Add a convolution without bias and its normalisation; `size` of the map behind it."""
        weights = kernel**2 * inputs // groups * outputs
        self.params += weights + 2 * outputs
        self.macs += (weights + NORM_OPERATIONS * outputs) * size**2

    def average(self, channels: int, size: int) -> None:
        """Add an average over the whole map."""
        self.macs += channels * (size**2 + 1)

    def connect(self, inputs: int, outputs: int) -> None:
        """Add a linear layer."""
        self.params += (inputs + 1) * outputs
        self.macs += inputs * outputs


def sizes(blocks: Sequence[Block]) -> dict[str, float]:
    """`params` and `macs` of the network of seven blocks."""
    counts, inputs, size = Counts(), STEM, STEM_SIZE
    counts.convolve(3, STEM, 3, STEM_SIZE)
    for block, outputs, stride in zip(blocks, WIDTHS, STRIDES, strict=True):
        for layer in range(block.layers):
            before, size = size, size // (stride if layer == 0 else 1)
            _add_layer(counts, block, inputs, outputs, before, size)
            inputs = outputs
    counts.convolve(inputs, HEAD, 1, size)
    counts.average(HEAD, size)
    counts.connect(HEAD, N_CLASSES)
    return {"params": counts.params, "macs": counts.macs}


def _add_layer(
    counts: Counts, block: Block, inputs: int, outputs: int, before: int, size: int
) -> None:
    wide = inputs * block.expansion
    if block.expansion > 1:
        counts.convolve(inputs, wide, 1, before)
    counts.convolve(wide, wide, block.kernel, size, groups=wide)
    if block.has_squeeze:
        counts.average(wide, size)
        counts.connect(wide, inputs // SQUEEZE)
        counts.connect(inputs // SQUEEZE, wide)
    counts.convolve(wide, outputs, 1, size)
