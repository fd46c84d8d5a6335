"""Dense convolution; many channels on small feature maps are computed as matrix products.

On feature maps of a few pixels, oneDNN's direct kernels reach half of the speed of the processor.
With hundreds of channels, one large matrix product over the unfolded input reaches nearly all of
it, and the unfolding costs little in comparison.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

LARGEST_MAP = 4
FEWEST_WEIGHTS = 90_000
"""Per pixel of the side of the output; at this number both ways are equally
fast on an AVX-512 core."""


class DenseConvolution(nn.Conv2d):
    """Same padding, no bias: `(batch, c, h, w)` to `(batch, d, h / s, w / s)`."""

    def __init__(self, in_channels: int, out_channels: int, kernel: int, stride: int = 1) -> None:
        super().__init__(in_channels, out_channels, kernel, stride, kernel // 2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or x.device.type != "cpu" or not self._is_wide(x):
            return super().forward(x)
        y: Tensor = _Product.apply(x, self.weight, self.stride[0])
        return y

    def _is_wide(self, x: Tensor) -> bool:
        """Whether there are many weights relative to the size of the output feature map."""
        side = (x.shape[3] - 1) // self.stride[0] + 1
        is_small = self.kernel_size[0] > 1 and side <= LARGEST_MAP
        is_full = not torch.is_autocast_enabled("cpu")
        return is_small and is_full and self.weight.numel() >= FEWEST_WEIGHTS * side


class _Product(torch.autograd.Function):
    """A convolution as a product of the unfolded input `(n h w, k k c)` and the weights."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, stride: int) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.stride = stride
        columns = _unfolded(x, weight.shape[2], stride)
        n, high, wide = columns.shape[:3]
        y = torch.mm(columns.flatten(0, 2).flatten(1), _matrix(weight).T)
        return y.view(n, high, wide, -1).permute(0, 3, 1, 2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, weight = ctx.saved_tensors
        kernel = weight.shape[2]
        rows = gradients[0].permute(0, 2, 3, 1).flatten(0, 2)
        by_x, by_weight = None, None
        if ctx.needs_input_grad[0]:
            by_x = _folded(torch.mm(rows, _matrix(weight)), x, kernel, ctx.stride)
        if ctx.needs_input_grad[1]:
            columns = _unfolded(x, kernel, ctx.stride).flatten(0, 2).flatten(1)
            outer = torch.mm(rows.T, columns).view(len(weight), kernel, kernel, -1)
            by_weight = outer.permute(0, 3, 1, 2)
        return by_x, by_weight, None


def _matrix(weight: Tensor) -> Tensor:
    """`(d, c, k, k)` to `(d, k k c)`; a view in channels_last."""
    return weight.permute(0, 2, 3, 1).flatten(1)


def _unfolded(x: Tensor, kernel: int, stride: int) -> Tensor:
    """Every window of the padded input: `(n, c, h, w)` to `(n, h / s, w / s, k, k, c)`."""
    padded = functional.pad(x, (kernel // 2,) * 4).permute(0, 2, 3, 1)
    windows = padded.unfold(1, kernel, stride).unfold(2, kernel, stride)
    return windows.permute(0, 1, 2, 4, 5, 3)


def _folded(columns: Tensor, x: Tensor, kernel: int, stride: int) -> Tensor:
    """Sum every window into the pixels that it came from: the transpose of `_unfolded`."""
    n, channels, high, wide = x.shape
    margin = kernel // 2
    rows_out, columns_out = (high - 1) // stride + 1, (wide - 1) // stride + 1
    windows = columns.view(n, rows_out, columns_out, kernel, kernel, channels)
    padded = columns.new_zeros(n, high + 2 * margin, wide + 2 * margin, channels)
    for i in range(kernel):
        for j in range(kernel):
            bottom, right = i + stride * rows_out, j + stride * columns_out
            padded[:, i:bottom:stride, j:right:stride] += windows[:, :, :, i, j]
    inner = padded[:, margin : margin + high, margin : margin + wide]
    return inner.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
