"""Features of parameters."""

from __future__ import annotations

import math

import pytest
import torch

from nasbo.gp.features import ParameterFeatures
from nasbo.space import Space


def test_features_of_numbers_and_choices(flat_space: Space) -> None:
    parameters = ParameterFeatures([one.parameter for one in flat_space.subspace(0).free])
    x = torch.tensor([[0.2, 1.0, 0.75]], dtype=torch.float64, requires_grad=True)
    features = parameters(x)
    one = math.sqrt(0.5)
    assert features[0].tolist() == pytest.approx([-0.3, 0.5, 0, 0, 0, one, 0])
    assert parameters.owners == [0, 1, 2, 2, 2, 2, 2]
    (gradient,) = torch.autograd.grad(features.sum(), x)
    assert gradient[0].tolist() == [1.0, 1.0, 0.0]
