"""Squeeze-and-excitation with few passes over memory on CPUs.

The backward pass of autograd reads feature maps that fit into no cache eight times. Here, products
that are only summed are computed for a few images at a time, inside the cache, and both parts of
the gradient by the input are written at once.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

aten = torch.ops.aten
CACHED_NUMBERS = 1 << 17
"""Number of float32 numbers that fit into a core's own cache."""


class SqueezeExcitation(nn.Module):
    """Scales each channel by a gate that is computed from the means of all channels."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.squeeze = nn.Linear(channels, hidden)
        self.excite = nn.Linear(hidden, channels)

    def forward(self, x: Tensor) -> Tensor:
        if x.device.type == "cpu" and self.training and not torch.is_autocast_enabled("cpu"):
            y: Tensor = _Gated.apply(x, *self.squeeze.parameters(), *self.excite.parameters())
            return y
        # SiLU, as in EfficientNet: with four hidden ReLUs, all of them are sometimes dead at the
        # start.
        gate = self.excite(functional.silu(self.squeeze(x.mean((2, 3))))).sigmoid()
        return x * gate[:, :, None, None]


class _Gated(torch.autograd.Function):
    """The same function with its own backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *weights: Tensor) -> Tensor:
        squeeze, squeeze_bias, excite, excite_bias = weights
        means = x.mean((2, 3))
        inner = functional.linear(means, squeeze, squeeze_bias)
        gate = functional.linear(functional.silu(inner), excite, excite_bias).sigmoid()
        ctx.save_for_backward(x, squeeze, excite, means, inner, gate)
        return x * gate[:, :, None, None]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        x, squeeze, excite, means, inner, gate = ctx.saved_tensors
        by_output = gradients[0]
        by_outer = aten.sigmoid_backward(_summed_product(by_output, x), gate)
        by_inner = aten.silu_backward(by_outer @ excite, inner)
        by_means = (by_inner @ squeeze) / (x.shape[2] * x.shape[3])
        by_x = torch.addcmul(by_means[:, :, None, None], by_output, gate[:, :, None, None])
        return (
            by_x,
            by_inner.T @ means,
            by_inner.sum(0),
            by_outer.T @ functional.silu(inner),
            by_outer.sum(0),
        )


def _summed_product(a: Tensor, b: Tensor) -> Tensor:
    """Sum of `a * b` over height and width: `(n, c, h, w)` twice to `(n, c)`."""
    n = max(1, CACHED_NUMBERS // a[0].numel())
    parts = zip(a.split(n), b.split(n), strict=True)
    return torch.cat([(one * other).sum((2, 3)) for one, other in parts])
