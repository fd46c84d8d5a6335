"""Squeeze-and-excitation: its backward pass, against autograd."""

import pytest
import torch

from trainers import squeeze
from trainers.squeeze import SqueezeExcitation


@pytest.mark.parametrize("cached", [1, 200, 1 << 17])
def test_values_and_gradients_are_those_of_autograd(
    monkeypatch: pytest.MonkeyPatch, cached: int
) -> None:
    monkeypatch.setattr(squeeze, "CACHED_NUMBERS", cached)
    torch.manual_seed(0)
    layer = SqueezeExcitation(6, 4).double()
    x = torch.randn(5, 6, 4, 3, dtype=torch.float64).contiguous(memory_format=torch.channels_last)
    weights = torch.randn_like(x)
    found = []
    for is_training in (True, False):  # without training autograd does it all
        layer.train(is_training)
        layer.zero_grad()
        leaf = x.clone(memory_format=torch.preserve_format).requires_grad_()
        y = layer(leaf)
        (y * weights).sum().backward()
        assert y.is_contiguous(memory_format=torch.channels_last)
        assert leaf.grad is not None
        gradients = [
            weight.grad.clone() for weight in layer.parameters() if weight.grad is not None
        ]
        assert len(gradients) == 4
        found.append([y.detach(), leaf.grad, *gradients])
    for own, expected in zip(*found, strict=True):
        assert torch.allclose(own, expected, atol=1e-12, rtol=0)
