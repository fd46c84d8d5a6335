"""Faster weight gradient of depthwise convolutions, against the ordinary one."""

import pytest
import torch
from torch.nn import functional

from trainers.depthwise import DepthwiseConvolution


@pytest.mark.parametrize("kernel", [3, 5])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [1, 2, 4, 5, 16])
def test_gradients_equal_those_of_the_plain_convolution(
    kernel: int, stride: int, size: int
) -> None:
    torch.manual_seed(0)
    layer = DepthwiseConvolution(24, kernel, stride).double()
    x = torch.randn(3, 24, size, size, dtype=torch.float64, requires_grad=True)
    y = layer(x)
    expected = functional.conv2d(x, layer.weight, None, stride, kernel // 2, 1, 24)
    assert torch.equal(y, expected)
    weighting = torch.randn_like(y)
    found = torch.autograd.grad((y * weighting).sum(), (x, layer.weight))
    wanted = torch.autograd.grad((expected * weighting).sum(), (x, layer.weight))
    for one, other in zip(found, wanted, strict=True):
        assert torch.allclose(one, other, atol=1e-12)


def test_no_gradient_is_computed_that_is_not_wanted() -> None:
    layer = DepthwiseConvolution(8, 5)
    layer.weight.requires_grad_(False)
    x = torch.randn(2, 8, 6, 6, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad is not None
    assert layer.weight.grad is None
