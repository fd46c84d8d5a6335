"""Kernels in numpy and in torch against their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from nasbo.gp.kernels import Matern, matern


def test_matern_has_the_right_value_and_a_finite_slope_at_zero() -> None:
    squared = torch.tensor([0.0, 0.3], dtype=torch.float64, requires_grad=True)
    d = math.sqrt(5 * 0.3)
    assert matern(squared)[1].item() == pytest.approx((1 + d + d * d / 3) * math.exp(-d))
    assert torch.autograd.gradcheck(matern, (squared[1:].detach().requires_grad_(),))
    matern(squared).sum().backward()
    assert squared.grad is not None
    assert squared.grad[0].item() == pytest.approx(-5 / 6)


def test_numpy_and_torch_agree() -> None:
    squared = np.random.default_rng(0).random((3, 4))
    leaf = torch.from_numpy(squared.copy()).requires_grad_()
    values = matern(leaf)
    (slopes,) = torch.autograd.grad(values.sum(), leaf)
    found = Matern.of(squared, 3.0)
    assert np.allclose(found.values, 3.0 * values.detach().numpy(), rtol=1e-14)
    assert np.allclose(found.slopes(), 3.0 * slopes.numpy(), rtol=1e-14)
