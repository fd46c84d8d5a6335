"""Density of hyperparameters, against scipy's normal density, and its gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm

from nasbo.gp.conditioning import FitError
from nasbo.gp.fit import JITTER, DenseEvidence, minimise, thinned
from nasbo.gp.rows import batches_of
from nasbo.space import load_space
from nasbo.surrogates.one_hot import OneHotGP

from .conftest import Observe


@pytest.fixture
def parts(observe: Observe) -> tuple[OneHotGP, DenseEvidence, np.ndarray]:
    space = load_space("svm")
    seen = observe(space, lambda config: float(len(str(config))), n=14)
    model = OneHotGP(space)
    z = torch.from_numpy((seen.scores - seen.scores.mean()) / seen.scores.std())
    marginal = model.marginal(list(seen.subspaces), list(seen.x), z)
    theta = np.array(model.priors.means) + np.random.default_rng(1).normal(
        size=len(model.priors.means)
    )
    return model, marginal, theta


def test_value_is_the_normal_density_and_the_priors(
    parts: tuple[OneHotGP, DenseEvidence, np.ndarray], observe: Observe
) -> None:
    model, marginal, theta = parts
    seen = observe(model.space, lambda config: float(len(str(config))), n=14)
    rows = model.features(batches_of(seen))
    K = model.gram(torch.from_numpy(theta), rows, rows).numpy()
    K = K + (np.exp(theta[model.noise]) + JITTER) * np.eye(14)
    z = (seen.scores - seen.scores.mean()) / seen.scores.std()
    means, sds = np.array(model.priors.means), np.array(model.priors.sds)
    prior = norm.logpdf(theta, means, sds).sum() + np.log(sds * np.sqrt(2 * np.pi)).sum()
    expected = -multivariate_normal.logpdf(z, cov=K) - prior
    assert marginal.value(theta) == pytest.approx(expected)
    assert marginal(theta)[0] == pytest.approx(expected)


def test_gradient_is_the_derivative(parts: tuple[OneHotGP, DenseEvidence, np.ndarray]) -> None:
    _, marginal, theta = parts
    _, gradient = marginal(theta)
    for at in range(len(theta)):
        step = np.eye(len(theta))[at] * 1e-5
        slope = (marginal.value(theta + step) - marginal.value(theta - step)) / 2e-5
        assert gradient[at] == pytest.approx(slope, rel=1e-4, abs=1e-5)


def test_maximum_is_better_than_the_prior_means(
    parts: tuple[OneHotGP, DenseEvidence, np.ndarray],
) -> None:
    model, marginal, _ = parts
    best = minimise(marginal, model.priors)
    assert marginal.value(best) < marginal.value(np.array(model.priors.means)) - 0.1


def test_density_that_is_nowhere_finite_is_an_error(
    parts: tuple[OneHotGP, DenseEvidence, np.ndarray],
) -> None:
    model = parts[0]
    with pytest.raises(FitError, match="must be finite"):
        minimise(lambda theta: (1e6, np.zeros_like(theta)), model.priors)


def test_rows_of_long_histories_are_thinned_evenly() -> None:
    assert list(thinned(np.zeros(5), 300)) == [0, 1, 2, 3, 4]
    some = thinned(np.random.default_rng(0).random(1000), 300)
    assert len(some) == 300
    assert (some[0], some[-1]) == (0, 999)
    assert set(np.diff(some)) <= {3, 4}


def test_the_best_rows_can_be_kept() -> None:
    z = np.random.default_rng(0).random(1000)
    some = thinned(z, 300, 100)
    assert len(set(some)) == 300
    assert set(np.argsort(-z)[:100]) <= set(some)
    assert np.diff(some).max() <= 10
