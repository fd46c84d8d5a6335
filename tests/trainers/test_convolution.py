"""Dense convolutions as matrix products: equal results, and used only where faster."""

import pytest
import torch
from torch import nn

from trainers import convolution
from trainers.convolution import DenseConvolution


@pytest.mark.parametrize(("kernel", "stride", "size"), [(3, 1, 4), (5, 1, 4), (3, 2, 8), (5, 2, 7)])
def test_the_product_is_the_convolution(
    monkeypatch: pytest.MonkeyPatch, kernel: int, stride: int, size: int
) -> None:
    monkeypatch.setattr(convolution, "FEWEST_WEIGHTS", 1)
    torch.manual_seed(0)
    own = DenseConvolution(6, 5, kernel, stride).double()
    plain = nn.Conv2d(6, 5, kernel, stride, kernel // 2, bias=False).double()
    plain.load_state_dict(own.state_dict())
    found = []
    for layer in (own, plain):
        layer.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        x = torch.randn(3, 6, size, size, dtype=torch.float64, generator=_seeded())
        x = x.contiguous(memory_format=torch.channels_last).requires_grad_()
        y = layer(x)
        assert y.is_contiguous(memory_format=torch.channels_last)
        (y * torch.randn(y.shape, dtype=torch.float64, generator=_seeded())).sum().backward()
        found.append([y.detach(), x.grad, layer.weight.grad])
    assert found[0][0].grad_fn is None
    for one, other in zip(*found, strict=True):
        assert one is not None
        assert other is not None
        assert torch.allclose(one, other, atol=1e-11, rtol=0)


@pytest.mark.parametrize(
    ("channels", "size", "is_training", "is_product"),
    [(248, 4, True, True), (128, 4, True, False), (248, 8, True, False), (248, 4, False, False)],
)
def test_only_many_channels_on_small_maps_are_products(
    channels: int, size: int, is_training: bool, is_product: bool
) -> None:
    layer = DenseConvolution(channels, channels, 3).train(is_training)
    y = layer(torch.randn(2, channels, size, size))
    assert ("_Product" in type(y.grad_fn).__name__) == is_product


def _seeded() -> torch.Generator:
    return torch.Generator().manual_seed(1)
