"""The two kernel shapes against their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from nasbo.space import load_space
from nasbo.surrogates.kernels import Priors, SharedUnits, matern, squared_distances, unit_columns
from nasbo.surrogates.layout import Layout
from nasbo.surrogates.structured import StructuredGP

SPACES = ["simulation", "svm", "cash", "nas_cifar10", "nas_cifar10_conditional"]


def random_batches(name: str, n: int, seed: int = 0) -> list[tuple]:
    space, rng = load_space(name), np.random.default_rng(seed)
    subspaces = [space.random_subspace(rng) for _ in range(n)]
    return [(subspace, torch.from_numpy(subspace.sample(1, rng))) for subspace in subspaces]


def test_matern_has_the_right_value_and_a_finite_slope_at_zero() -> None:
    squared = torch.tensor([0.0, 0.3], dtype=torch.float64, requires_grad=True)
    d = math.sqrt(5 * 0.3)
    assert matern(squared)[1].item() == pytest.approx((1 + d + d * d / 3) * math.exp(-d))
    assert torch.autograd.gradcheck(matern, (squared[1:].detach().requires_grad_(),))
    matern(squared).sum().backward()
    assert squared.grad is not None
    assert squared.grad[0].item() == pytest.approx(-5 / 6)


@pytest.mark.parametrize("name", SPACES)
def test_kernel_is_symmetric_and_positive(name: str) -> None:
    model = StructuredGP(load_space(name))
    rows = model._featurise(model._rows(random_batches(name, 40)))
    K = model._gram(rows, rows)
    assert torch.allclose(K, K.T, atol=1e-12)
    assert torch.linalg.eigvalsh(K).min() > -1e-9


@pytest.mark.parametrize("name", SPACES)
def test_diagonals_agree_with_the_matrix(name: str) -> None:
    model = StructuredGP(load_space(name))
    rows = model._rows(random_batches(name, 12))
    for kernel in model._kernels:
        features = kernel.features(rows)
        whole = kernel.gram(model.theta, features, features).diagonal()
        assert torch.allclose(kernel.diagonal(model.theta, features), whole, atol=1e-12)


def test_shared_units_follow_their_formula() -> None:
    layout, priors = Layout(load_space("nas_cifar10")), Priors()
    units = max(layout.types, key=len)
    kernel = SharedUnits(layout, units, priors, -1.0)
    rows = layout.rows(random_batches("nas_cifar10", 2, seed=3))
    rng = np.random.default_rng(0)
    theta = torch.from_numpy(np.array(priors.means) + 0.3 * rng.standard_normal(len(priors.means)))
    *log_scales, log_weight, logit, log_reach = theta.tolist()
    rho, reach = 1 / (1 + math.exp(-logit)), math.exp(log_reach)

    def unit(row: int, number: int) -> torch.Tensor:
        values, start = [], 0
        for column, scale in zip(layout.units[number].columns, log_scales, strict=True):
            width = layout.columns[column].width
            place = unit_columns(layout, number)[start : start + width]
            values.append(rows.features[row, place] * math.exp(-scale))
            start += width
        return torch.cat(values)[None]

    expected = 0.0
    for u in units:
        for v in units:
            if rows.active[0, layout.unit_gate(u)] and rows.active[1, layout.unit_gate(v)]:
                gap = abs(layout.units[u].index - layout.units[v].index)
                relation = (1 - rho) * (u == v) + rho * math.exp(-gap / reach)
                correlation = matern(squared_distances(unit(0, u), unit(1, v))).item()
                expected += math.exp(log_weight) * relation * correlation
    features = kernel.features(rows)
    assert kernel.gram(theta, features, features)[0, 1].item() == pytest.approx(expected)


@pytest.mark.parametrize("name", SPACES)
def test_path_with_gradients_gives_the_same_covariances(name: str) -> None:
    model, batches = StructuredGP(load_space(name)), random_batches(name, 6)
    plain = model._featurise(model._rows(batches))
    tracked = [(subspace, x.clone().requires_grad_()) for subspace, x in batches]
    traced = model._featurise(model._rows(tracked))
    assert torch.allclose(model._gram(plain, plain), model._gram(traced, plain), atol=1e-12)
