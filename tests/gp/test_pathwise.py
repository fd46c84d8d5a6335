"""Functions drawn from a posterior: their mean, spread and slope."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nasbo.gp.pathwise import PosteriorDraw
from nasbo.space import load_space
from nasbo.surrogates.independent import IndependentGPs

from .conftest import Observe


def length(config: dict) -> float:
    return float(len(str(config)) % 6)


def test_draws_have_the_mean_and_spread_of_the_posterior(observe: Observe) -> None:
    space = load_space("svm")
    seen = observe(space, length, n=20)
    model = IndependentGPs(space)
    model.fit(seen)
    subspace = seen.subspaces[0]
    part = model.model(subspace)
    rng = np.random.default_rng(0)
    x = torch.from_numpy(subspace.sample(6, rng))
    with torch.no_grad():
        draws = torch.stack([PosteriorDraw(part, rng)(x) for _ in range(600)])
    mean, variance = model.posterior(subspace, x)
    assert torch.allclose(draws.mean(0), mean, atol=0.15)
    assert torch.allclose(draws.std(0), variance.sqrt(), atol=0.1)


def test_draws_without_data_have_the_prior(observe: Observe) -> None:
    space = load_space("svm")
    model = IndependentGPs(space).model(space.subspace(0))
    rng = np.random.default_rng(0)
    x = torch.from_numpy(space.subspace(0).sample(3, rng))
    draws = torch.stack([PosteriorDraw(model, rng)(x) for _ in range(600)])
    assert draws.std(0).numpy() == pytest.approx([1.0] * 3, abs=0.12)


def test_draws_are_differentiable(observe: Observe) -> None:
    space = load_space("simulation")
    model = IndependentGPs(space)
    model.fit(observe(space, length, n=16))
    draw = PosteriorDraw(model.model(space.subspace(0)), np.random.default_rng(1))
    x = torch.tensor([[0.0, 0.4]], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(draw(x).sum(), x)
    step = torch.tensor([[0.0, 1e-5]], dtype=torch.float64)
    slope = float((draw(x + step) - draw(x - step)).detach() / 2e-5)
    assert float(gradient[0, 1]) == pytest.approx(slope, rel=1e-3)
