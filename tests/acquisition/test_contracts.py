"""What every acquisition of the registry must keep to."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm

from nasbo.acquisition import ACQUISITIONS, LogEI, LogPI, Pointwise, Thompson
from nasbo.acquisition.bounds import UCB, AddTreeUCB
from nasbo.acquisition.thompson import draw
from nasbo.acquisition.wider import Wider
from nasbo.space import load_space
from nasbo.surrogates.base import batches_of

from .scenes import MIXED, fitted, observed

POINTWISE = sorted(name for name, kind in ACQUISITIONS.items() if issubclass(kind, Pointwise))
MEANS = torch.tensor([-30.0, -4.0, -0.5, 0.0, 0.4, 3.0], dtype=torch.float64)
VARIANCES = torch.tensor([0.01, 1.0, 0.3, 2.0, 0.09, 1.5], dtype=torch.float64)


def prepared(name: str) -> Pointwise:
    """An acquisition that has seen data; wrapped ones are of the family, too."""
    space = load_space(MIXED)
    data = observed(space)
    acquisition = ACQUISITIONS[name]().prepare(fitted(space, data), data)
    assert isinstance(acquisition, Pointwise)
    return acquisition


def test_registry_has_all_of_them() -> None:
    kinds = {LogEI, LogPI, UCB, AddTreeUCB, Thompson}
    assert kinds <= set(ACQUISITIONS.values())


@pytest.mark.parametrize("name", POINTWISE)
def test_a_larger_mean_promises_more(name: str) -> None:
    acquisition = prepared(name)
    scores = [acquisition.score(MEANS + gain, VARIANCES) for gain in (0.0, 0.1, 1.0)]
    assert (scores[1] > scores[0]).all()
    assert (scores[2] > scores[1]).all()


@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("name", POINTWISE)
def test_gradient_is_that_of_finite_differences(name: str, is_wide: bool) -> None:
    acquisition = Wider(prepared(name), 4.0) if is_wide else prepared(name)
    moments = (MEANS.clone().requires_grad_(), VARIANCES.clone().requires_grad_())
    assert torch.autograd.gradcheck(acquisition.score, moments, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", POINTWISE)
def test_a_batch_is_scored_as_its_rows_one_by_one(name: str) -> None:
    space = load_space(MIXED)
    data = observed(space, 20)
    model = fitted(space, data)
    score = prepared(name).under(model)
    rows = batches_of(observed(space, 30, seed=1))
    together = score(rows)
    alone = [score([(subspace, x[at : at + 1])]) for subspace, x in rows for at in range(len(x))]
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", POINTWISE)
def test_scores_are_finite_far_below_the_best(name: str) -> None:
    mean = torch.tensor([-60.0], dtype=torch.float64, requires_grad=True)
    value = prepared(name).score(mean, torch.ones(1, dtype=torch.float64))
    (slope,) = torch.autograd.grad(value.sum(), mean)
    assert torch.isfinite(value).all()
    assert slope.item() > 0.5


def test_logarithms_of_improvements_are_what_they_say() -> None:
    mean, sd, best = np.array([0.3, -2.0, 1.5]), np.array([0.5, 0.2, 1.0]), 0.7
    u = (mean - best) / sd
    moments = torch.tensor(mean), torch.tensor(sd**2)
    expected = np.log(sd * (norm.pdf(u) + u * norm.cdf(u)))
    assert LogEI(best).score(*moments).numpy() == pytest.approx(expected, rel=1e-4)
    assert LogPI(best).score(*moments).numpy() == pytest.approx(norm.logcdf(u), rel=1e-6)


def test_bounds_are_what_they_say() -> None:
    mean, variance = torch.tensor([1.0]), torch.tensor([4.0])
    assert UCB(3.0).score(mean, variance).item() == pytest.approx(7.0)
    space = load_space(MIXED)
    data = observed(space, 12)
    bound = AddTreeUCB(n_dimensions=3).prepare(fitted(space, data), data)
    assert bound.sds == pytest.approx((0.2 * 3 * np.log(24)) ** 0.5)


def test_wider_is_the_same_with_larger_deviations() -> None:
    inner = LogEI(0.3)
    wider = Wider(inner, 3.0)
    torch.testing.assert_close(wider.score(MEANS, VARIANCES), inner.score(MEANS, 9.0 * VARIANCES))
    assert (wider.name, wider.is_sampled) == (inner.name, inner.is_sampled)


def test_draws_have_the_mean_and_the_covariance() -> None:
    covariance = np.array([[1.0, 0.6], [0.6, 0.5]])
    draws = draw(np.array([1.0, -2.0]), covariance, np.random.default_rng(0), 20_000)
    assert draws.mean(0) == pytest.approx([1.0, -2.0], abs=0.03)
    assert np.cov(draws.T) == pytest.approx(covariance, abs=0.03)
