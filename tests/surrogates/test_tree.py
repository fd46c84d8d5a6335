"""Tree-structured GP: its kernel is the marginal of eq. 4."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from nasbo.gp.fit import JITTER
from nasbo.history.data import Data
from nasbo.space import Space, load_space
from nasbo.surrogates.base import batches_of
from nasbo.surrogates.tree import N_FOURIER, TreeGP
from nasbo.testing.spaces import jenatton

from .conftest import Observe

UNIT = {"type": "float", "range": [0, 1]}


@pytest.fixture
def space() -> Space:
    return load_space("simulation")


@pytest.fixture(params=["linear", "fourier"])
def fitted(request: pytest.FixtureRequest, space: Space, observe: Observe) -> tuple[TreeGP, Data]:
    model, seen = TreeGP(space, request.param), observe(space, jenatton, n=22)
    model.fit(seen)
    return model, seen


def inner_features(model: TreeGP, theta: torch.Tensor, half: int, r: float) -> torch.Tensor:
    """z of a node with one number, shared by half of the leaves: a 1 and its features, scaled."""
    constant, _, slope, stretch = theta[1:5]
    if model._waves is None:
        slopes = torch.tensor([r - 0.5], dtype=torch.float64)
    else:
        directions, phases, _ = model._waves
        waves = slice(half * N_FOURIER, (half + 1) * N_FOURIER)
        angles = (r - 0.5) * directions[half, waves] * torch.exp(-stretch) + phases[waves]
        slopes = math.sqrt(2 / N_FOURIER) * torch.cos(angles)
    one = torch.ones(1, dtype=torch.float64)
    return torch.cat([one * torch.exp(constant / 2), slopes * torch.exp(slope / 2)])


def marginal(model: TreeGP, theta: torch.Tensor, batches: list) -> np.ndarray:
    """Eq. 4 without the noise: Z' Sigma_c Z + K_block, computed row by row.

    A leaf of the space has two numbers: one that it shares with another leaf, and its own.
    The hyperparameters are noise, constant, offset, slope and stretch, then a lengthscale
    and a weight of each leaf.
    """
    rows = [(s.index, *map(float, x)) for s, block in batches for x in block]
    K = np.zeros((len(rows), len(rows)))
    for i, (left, r, own) in enumerate(rows):
        for j, (right, s, other) in enumerate(rows):
            if left // 2 == right // 2:
                z, t = (inner_features(model, theta, left // 2, value) for value in (r, s))
                K[i, j] += float(z @ t)
            if left == right:
                scale, weight = theta[5 + 2 * left : 7 + 2 * left].exp()
                d = math.sqrt(5) * abs(own - other) / float(scale)
                K[i, j] += float(theta[2].exp() + weight * (1 + d + d * d / 3) * math.exp(-d))
    return K


def test_likelihood_is_that_of_the_marginal(fitted: tuple[TreeGP, Data]) -> None:
    model, seen = fitted
    theta = model.theta + 0.3 * torch.sin(torch.arange(len(model.theta), dtype=torch.float64))
    K = marginal(model, theta, batches_of(seen))
    K += (np.exp(float(theta[model.noise])) + JITTER) * np.eye(len(K))
    z = (seen.scores - seen.scores.mean()) / seen.scores.std()
    away = (theta.numpy() - np.array(model.priors.means)) / np.array(model.priors.sds)
    expected = -multivariate_normal.logpdf(z, cov=K) + 0.5 * away @ away
    evidence = model.marginal(list(seen.subspaces), list(seen.x), torch.from_numpy(z))
    value, gradient = evidence(theta.numpy())
    assert value == pytest.approx(expected)
    for at, step in enumerate(1e-5 * np.eye(len(theta))):
        up, down = (evidence(theta.numpy() + s)[0] for s in (step, -step))
        assert gradient[at] == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-5)


def test_posterior_is_that_of_the_marginal(fitted: tuple[TreeGP, Data]) -> None:
    model, seen = fitted
    generator = torch.Generator().manual_seed(0)
    new = [
        (s, torch.rand(2, s.n_free, generator=generator, dtype=torch.float64))
        for s in seen.subspaces[:4]
    ]
    n = len(seen)
    K = marginal(model, model.theta, [*batches_of(seen), *new])
    noisy = K[:n, :n] + (np.exp(float(model.theta[model.noise])) + JITTER) * np.eye(n)
    z = (seen.scores - seen.scores.mean()) / seen.scores.std()
    mean = K[n:, :n] @ np.linalg.solve(noisy, z)
    covariance = K[n:, n:] - K[n:, :n] @ np.linalg.solve(noisy, K[:n, n:])
    found = model.posteriors(new)
    assert np.allclose(found[0], mean, atol=1e-6)
    assert np.allclose(found[1], covariance.diagonal(), atol=1e-6)
    joint = model.joint_posterior(new)
    assert np.allclose(joint[0], mean, atol=1e-6)
    assert np.allclose(joint[1], covariance, atol=1e-6)


def test_overlap_of_paths_is_the_intersection_kernel(space: Space) -> None:
    """With equal variances, Z' Sigma_c Z counts the inner nodes that two paths share."""
    bare = {
        "x1": {
            "type": "choice",
            "range": [0, 1],
            "submodule": {
                0: {"x2": {"type": "choice", "range": [0, 1], "submodule": {0: {"x4": UNIT}}}},
                1: {"x3": {"type": "choice", "range": [0, 1], "submodule": {0: {"x6": UNIT}}}},
            },
        }
    }
    space = load_space(bare)
    model = TreeGP(space)
    theta = torch.zeros(len(model.priors.means), dtype=torch.float64)
    batches = [(s, torch.zeros(1, s.n_free, dtype=torch.float64)) for s in space.subspaces()]
    rows = model.features(batches)
    expected = [[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 2, 1], [0, 0, 1, 2]]
    found = model.path_gram(theta, rows, rows)
    assert torch.equal(found, torch.tensor(expected, dtype=torch.float64))
    assert torch.equal(model.path_diagonal(theta, rows), found.diagonal())


def test_path_posterior_ignores_the_leaf(fitted: tuple[TreeGP, Data]) -> None:
    model, seen = fitted
    subspace = seen.subspaces[0]
    assert model.design.own_columns(subspace) == [1]
    assert model.design.shared_columns(subspace) == [0]
    x = torch.tensor([[0.0, 0.1], [0.0, 0.9], [1.0, 0.1]], dtype=torch.float64)
    mean, variance = model.path_posterior([(subspace, x)])
    assert mean[0].item() == pytest.approx(mean[1].item(), abs=1e-12)
    assert mean[0] > mean[2]
    assert (variance > 0).all()


def test_leaf_without_results_has_a_gradient(observe: Observe) -> None:
    """There are no data and no shared parameter: the posterior is constant, but differentiable."""
    leaves = {0: {"a": UNIT}, 1: {"b": UNIT}}
    space = load_space({"t": {"type": "choice", "range": [0, 1], "submodule": leaves}})
    seen = observe(space, lambda c: float(c.get("a", 0.0)), n=12)
    rows = [at for at, s in enumerate(seen.subspaces) if s.index == 0]
    model = TreeGP(space)
    model.fit(
        Data(space, [seen.subspaces[r] for r in rows], [seen.x[r] for r in rows], seen.scores[rows])
    )
    x = torch.rand(3, 1, dtype=torch.float64, requires_grad=True)
    mean, variance = model.posterior(space.subspace(1), x)
    (slope,) = torch.autograd.grad((mean + variance).sum(), x)
    assert torch.equal(slope, torch.zeros(3, 1, dtype=torch.float64))


def test_fourier_features_bend_where_linear_ones_cannot(observe: Observe) -> None:
    """A bump in a shared parameter (supplement of the paper, section 4.3)."""
    space = load_space(
        {
            "s": UNIT,
            "t": {"type": "choice", "range": [0, 1], "submodule": {0: {"a": UNIT}, 1: {"b": UNIT}}},
        }
    )
    seen = observe(space, lambda c: -8.0 * (c["s"] - 0.5) ** 2, n=40)
    s = torch.linspace(0, 1, 21, dtype=torch.float64)
    grid = torch.stack([s, torch.full_like(s, 0.5)], 1)
    truth = -8.0 * (s - 0.5) ** 2
    errors = {}
    for features in ("linear", "fourier"):
        model = TreeGP(space, features)
        model.fit(seen)
        mean, _ = model.posterior(space.subspace(0), grid)
        predicted = torch.tensor([model.scale.to_score(float(m)) for m in mean])
        errors[features] = float(((predicted - truth) ** 2).mean())
    assert errors["fourier"] < 0.1 * errors["linear"]
