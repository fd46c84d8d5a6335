"""Network of a configuration as a `torch.nn.Module`, built from its rows.

All modules map `(batch, channels, height, width)` to the same layout; they are
written for channels_last.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from trainers.architecture import BlockRow, Config, InvalidArchitecture, check, rows, stem_channels
from trainers.convolution import DenseConvolution
from trainers.depthwise import DepthwiseConvolution
from trainers.squeeze import SqueezeExcitation

__all__ = ["BlockRow", "InvalidArchitecture", "build", "check", "rows"]


def build(
    config: Config, width: float = 1.0, n_classes: int = 10, image_size: int = 32
) -> nn.Sequential:
    """Build the network on torch's current default device, with newly initialised weights.

    Args:
        config: a configuration of the NAS space.
        width: factor in (0, 1] on all channels.
        n_classes: outputs of the last layer.
        image_size: side of the images; on small images late strides are left out.

    Returns:
        A module from `(batch, 3, image_size, image_size)` to logits `(batch, n_classes)`.

    Raises:
        InvalidArchitecture: the configuration cannot be built.
    """
    table = rows(config, width, image_size)
    stem = ConvolutionNorm(3, stem_channels(width), 3)
    blocks = [layer for row in table for layer in _block(row)]
    network = nn.Sequential(stem, *blocks, Head(table[-1].out_channels, n_classes))
    network.apply(initialise)
    return network


def _block(row: BlockRow) -> list[nn.Module]:
    return [LAYERS[row.op](row, layer) for layer in range(row.layers)]


def initialise(module: nn.Module) -> None:
    """Draw the weights of a convolution or of the head; for `Module.apply`."""
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    elif isinstance(module, Head):
        nn.init.normal_(module.linear.weight, std=0.01)
        nn.init.zeros_(module.linear.bias)


class ConvolutionNorm(nn.Sequential):
    """Dense convolution without bias, batch normalisation and, if wanted, a ReLU."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel: int,
        stride: int = 1,
        is_active: bool = True,
    ) -> None:
        convolution = DenseConvolution(in_channels, out_channels, kernel, stride)
        parts: list[nn.Module] = [convolution, nn.BatchNorm2d(out_channels)]
        super().__init__(*parts, *([nn.ReLU(inplace=True)] if is_active else []))


class DepthwiseNorm(nn.Sequential):
    """Depthwise convolution without bias, batch normalisation, ReLU."""

    def __init__(self, channels: int, kernel: int, stride: int = 1) -> None:
        convolution = DepthwiseConvolution(channels, kernel, stride)
        super().__init__(convolution, nn.BatchNorm2d(channels), nn.ReLU(inplace=True))


class Head(nn.Module):
    """Global average pooling, then a linear layer: `(batch, channels, h, w)`
    to `(batch, n_classes)`.
    """

    def __init__(self, channels: int, n_classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(channels, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.linear(x.mean((2, 3)))
        return logits


class PlainLayer(nn.Sequential):
    """Operation 0: a dense convolution."""

    def __init__(self, row: BlockRow, layer: int) -> None:
        stride = row.stride if layer == 0 else 1
        convolution = ConvolutionNorm(row.inputs(layer), row.out_channels, row.kernel, stride)
        super().__init__(convolution, *_squeeze(row, layer, row.out_channels))


class SeparableLayer(nn.Sequential):
    """Operation 1: depthwise, then pointwise convolution (MobileNet)."""

    def __init__(self, row: BlockRow, layer: int) -> None:
        inputs, stride = row.inputs(layer), row.stride if layer == 0 else 1
        super().__init__(
            DepthwiseNorm(inputs, row.kernel, stride),
            ConvolutionNorm(inputs, row.out_channels, 1),
            *_squeeze(row, layer, row.out_channels),
        )


class InvertedLayer(nn.Module):
    """Operation 2: expand, depthwise, linear projection (MobileNetV2), with a skip
    connection if shapes allow.
    """

    def __init__(self, row: BlockRow, layer: int) -> None:
        super().__init__()
        inputs, stride = row.inputs(layer), row.stride if layer == 0 else 1
        wide = inputs * row.expansion
        self.is_residual = stride == 1 and inputs == row.out_channels
        self.body = nn.Sequential(
            ConvolutionNorm(inputs, wide, 1),
            DepthwiseNorm(wide, row.kernel, stride),
            *_squeeze(row, layer, wide),
            ConvolutionNorm(wide, row.out_channels, 1, is_active=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.body(x)
        return y + x if self.is_residual else y


class ResidualLayer(nn.Module):
    """Operation 3: two dense convolutions and a shortcut (ResNet), with a
    projection if shapes differ.
    """

    def __init__(self, row: BlockRow, layer: int) -> None:
        super().__init__()
        inputs, stride = row.inputs(layer), row.stride if layer == 0 else 1
        outputs = row.out_channels
        self.body = nn.Sequential(
            ConvolutionNorm(inputs, outputs, row.kernel, stride),
            ConvolutionNorm(outputs, outputs, row.kernel, is_active=False),
            *_squeeze(row, layer, outputs),
        )
        is_same = stride == 1 and inputs == outputs
        self.shortcut: nn.Module = (
            nn.Identity()
            if is_same
            else ConvolutionNorm(inputs, outputs, 1, stride, is_active=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu_(self.body(x) + self.shortcut(x))


def _squeeze(row: BlockRow, layer: int, channels: int) -> list[nn.Module]:
    hidden = row.squeeze_channels(layer)
    return [SqueezeExcitation(channels, hidden)] if hidden else []


LAYERS: dict[str, Callable[[BlockRow, int], nn.Module]] = {
    "conv": PlainLayer,
    "separable": SeparableLayer,
    "inverted": InvertedLayer,
    "resnet": ResidualLayer,
}
