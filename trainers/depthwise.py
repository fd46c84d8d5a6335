"""Depthwise convolution with a faster weight gradient on CPUs.

oneDNN has a fast kernel for the weight gradient of depthwise convolutions up to three columns wide;
for five columns it uses one that is several times slower. The gradient of a 5x5 kernel is therefore
computed as that of two 5x3 kernels which share the middle column.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class DepthwiseConvolution(nn.Conv2d):
    """One filter per channel, same padding: `(batch, c, h, w)` to `(batch, c, h / s, w / s)`."""

    def __init__(self, channels: int, kernel: int, stride: int = 1) -> None:
        super().__init__(
            channels, channels, kernel, stride, kernel // 2, groups=channels, bias=False
        )

    def forward(self, x: Tensor) -> Tensor:
        is_split = self.kernel_size == (5, 5) and x.device.type == "cpu" and self.training
        if not is_split:
            return super().forward(x)
        y: Tensor = _SplitGradient.apply(x, self.weight, self.stride[0])
        return y


class _SplitGradient(torch.autograd.Function):
    """A 5x5 depthwise convolution whose weight gradient is computed in two halves."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, stride: int) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.stride = stride
        return functional.conv2d(x, weight, None, stride, 2, 1, len(weight))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, weight = ctx.saved_tensors
        gradient = gradients[0].contiguous(memory_format=torch.channels_last)
        by_input, by_weight = None, None
        if ctx.needs_input_grad[0]:
            by_input = _backward(gradient, x, weight, ctx.stride, 2, (True, False, False))[0]
        if ctx.needs_input_grad[1]:
            by_weight = _weight_gradient(gradient, x, weight, ctx.stride)
        return by_input, by_weight, None


def _weight_gradient(gradient: Tensor, x: Tensor, weight: Tensor, stride: int) -> Tensor:
    width = (gradient.shape[3] - 1) * stride + 3
    below = (gradient.shape[2] - 1) * stride + 3 - x.shape[2]
    narrow = weight[..., :3].contiguous()
    halves = []
    for left in (2, 0):
        # The padding is explicit: the fast kernel is not chosen for convolutions with padding.
        moved = functional.pad(x, (left, width - x.shape[3] - left, 2, below))
        halves.append(_backward(gradient, moved, narrow, stride, 0, (False, True, False))[1])
    return torch.cat([halves[0], halves[1][..., 1:]], dim=3)


def _backward(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: int,
    padding: int,
    wanted: tuple[bool, bool, bool],
) -> tuple[Tensor, Tensor, Tensor]:
    strides, paddings, ones, none = (stride, stride), (padding, padding), (1, 1), (0, 0)
    result: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(
        gradient, x, weight, None, strides, paddings, ones, False, none, len(weight), wanted
    )
    return result
