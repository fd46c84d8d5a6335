"""Networks of MnasNet's space as a `torch.nn.Module`, built from their rows."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from trainers.architecture import Config
from trainers.blocks import LAYERS, ConvolutionNorm, Head, InvertedLayer, initialise
from trainers.mnasnet import MnasRow, rows, stem_of


def build(
    config: Config, width: float = 1.0, n_classes: int = 10, image_size: int = 32
) -> nn.Sequential:
    """Build the network on torch's current default device, with newly initialised weights.

    Args:
        config: a configuration of MnasNet's space.
        width: factor in (0, 1] on all channels.
        n_classes: outputs of the last layer.
        image_size: side of the images.

    Returns:
        A module from `(batch, 3, image_size, image_size)` to logits `(batch, n_classes)`.

    Raises:
        InvalidArchitecture: the configuration cannot be built.
    """
    table, first = rows(config, width, image_size), stem_of(width, image_size)
    stem = ConvolutionNorm(3, first.out_channels, first.kernel, first.stride)
    layers = [SkipLayer(row, layer) for row in table for layer in range(row.layers)]
    network = nn.Sequential(stem, *layers, Head(table[-1].out_channels, n_classes))
    network.apply(initialise)
    return network


class SkipLayer(nn.Module):
    """A layer of a block, and the skip that is added to its output."""

    def __init__(self, row: MnasRow, layer: int) -> None:
        super().__init__()
        made = LAYERS[row.op](row, layer)
        # Whether there is a residual connection is not up to the operation here.
        self.body = made.body if isinstance(made, InvertedLayer) else made
        self.skip = row.skip_of(layer)
        self.stride, self.channels = row.stride if layer == 0 else 1, row.out_channels

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.body(x)
        if self.skip == "none":
            return y
        return y + (x if self.skip == "identity" else self._pooled(x))

    def _pooled(self, x: Tensor) -> Tensor:
        """The input in the shape of the output, without weights."""
        if self.stride > 1:
            x = functional.avg_pool2d(x, self.stride, ceil_mode=True)
        missing = self.channels - x.shape[1]
        if missing <= 0:
            return x[:, : self.channels]
        return functional.pad(x, (0, 0, 0, 0, 0, missing))
