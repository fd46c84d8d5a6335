"""The Matérn correlation of autograd against its formula."""

from __future__ import annotations

import math

import pytest
import torch
from nasbo.surrogates.kernels import matern


def test_matern_has_the_right_value_and_a_finite_slope_at_zero() -> None:
    squared = torch.tensor([0.0, 0.3], dtype=torch.float64, requires_grad=True)
    d = math.sqrt(5 * 0.3)
    assert matern(squared)[1].item() == pytest.approx((1 + d + d * d / 3) * math.exp(-d))
    assert torch.autograd.gradcheck(matern, (squared[1:].detach().requires_grad_(),))
    matern(squared).sum().backward()
    assert squared.grad is not None
    assert squared.grad[0].item() == pytest.approx(-5 / 6)
