"""Repeats of configs: their information about the noise, against densities of all single values."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from nasbo.gp.fit import NegativeLogPosterior
from nasbo.gp.pathwise import PosteriorDraw
from nasbo.gp.repeats import Repeats
from nasbo.gp.rows import batches_of
from nasbo.gp.transform import Scale, model_scale
from nasbo.history.data import Data
from nasbo.space import load_space
from nasbo.surrogates.add_tree import AddTreeGP
from nasbo.surrogates.attention import AttentionGP
from nasbo.surrogates.base import ExactGP
from nasbo.surrogates.independent import IndependentGPs
from nasbo.surrogates.one_hot import OneHotGP
from nasbo.surrogates.structured import StructuredGP

SPACE = load_space({"x": {"type": "float", "range": [0, 1]}})
NOISE_SD = 0.5
MODELS = [OneHotGP, AddTreeGP, StructuredGP]


def measure(seed: int, n: int = 15, n_repeated: int = 5, times: int = 4) -> tuple[Data, list]:
    """Noisy values of a random wave at ``n`` configs, of which some are measured several times."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 1))
    phase, pace = rng.uniform(0, 2 * math.pi), rng.uniform(0.5, 1.5)
    f = 1.4 * np.sin(phase + 2 * math.pi * pace * x[:, 0])
    counts = [times if at < n_repeated else 1 for at in rng.permutation(n)]
    values = [f[at] + NOISE_SD * rng.standard_normal(m) for at, m in enumerate(counts)]
    data = Data(
        SPACE,
        [SPACE.subspace(0)] * n,
        list(x),
        np.array([some.mean() for some in values]),
        n,
        n_values=np.array(counts),
        spread=np.array([some.var() * len(some) for some in values]),
    )
    return data, values


def without_repeats(data: Data) -> Data:
    """The same means, as if each were a single value."""
    return replace(data, n_values=np.zeros(0, dtype=np.intp), spread=np.zeros(0))


def found_sd(model: ExactGP, data: Data) -> float:
    """Standard deviation of the noise, at the median of the scores."""
    model.fit(data)
    slope = model.scale.slope(np.median(data.scores)[None])
    return math.sqrt(float(model.noise_variance())) / float(slope[0])


def evidence(model: OneHotGP | StructuredGP, data: Data, z: np.ndarray) -> NegativeLogPosterior:
    """Posterior density of the hyperparameters; ``z`` are the scores on the model's scale."""
    if isinstance(model, StructuredGP):
        assert model.repeats is not None
        return model.evidence(model.features(batches_of(data)), z, model.repeats)
    return model.marginal(list(data.subspaces), list(data.x), torch.from_numpy(z))


def fitted(kind: type, seed: int) -> tuple[OneHotGP | StructuredGP, Data, NegativeLogPosterior]:
    model, (data, _) = kind(SPACE), measure(seed)
    model.fit(data)
    z, _ = model_scale(data.scores, data.n_design, model.is_straightened)
    return model, data, evidence(model, data, z)


@pytest.mark.parametrize("kind", MODELS)
def test_repeats_show_the_noise(kind: type) -> None:
    sets = [measure(seed)[0] for seed in range(10)]
    with_spread = [abs(math.log(found_sd(kind(SPACE), data) / NOISE_SD)) for data in sets]
    without = [
        abs(math.log(found_sd(kind(SPACE), without_repeats(data)) / NOISE_SD)) for data in sets
    ]
    assert sum(gap < math.log(2) for gap in with_spread) >= 8
    assert np.mean(with_spread) < 0.5 * np.mean(without)


@pytest.mark.parametrize("kind", MODELS)
def test_gradient_is_the_derivative(kind: type) -> None:
    model, _, density = fitted(kind, 0)
    rng = np.random.default_rng(1)
    theta = np.array(model.priors.means) + 0.2 * rng.standard_normal(len(model.priors.means))
    theta[density.noise] = -2.0
    _, gradient = density(theta)
    assert density.repeats.degrees.sum() == 15
    for at in range(len(theta)):
        step = 1e-5 * np.eye(len(theta))[at]
        slope = (density.value(theta + step) - density.value(theta - step)) / 2e-5
        assert gradient[at] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_density_is_that_of_all_single_values() -> None:
    data, values = measure(2)
    model = OneHotGP(SPACE)
    model.fit(data)
    z, scale = model_scale(data.scores, data.n_design, is_straightened=False)
    density = evidence(model, data, z)
    at = np.repeat(np.arange(len(data)), data.n_values)
    single = (np.concatenate(values) - scale.mean) / scale.sd
    rows = model.features(batches_of(data))
    gaps = []
    for move in (-0.5, 0.0, 1.0):
        theta = np.array(model.priors.means) + move
        theta[model.noise] = -2.0 + move
        K = model.gram(torch.from_numpy(theta), rows, rows).numpy()[np.ix_(at, at)]
        K = K + (math.exp(theta[model.noise]) + density.jitter) * np.eye(len(at))
        away = (theta - np.array(model.priors.means)) / np.array(model.priors.sds)
        gaps.append(
            density.value(theta) + multivariate_normal.logpdf(single, cov=K) - 0.5 * away @ away
        )
    assert gaps == pytest.approx([gaps[0]] * 3, abs=1e-6)


@pytest.mark.parametrize("kind", [*MODELS, AttentionGP, IndependentGPs])
def test_a_repeated_config_draws_the_mean_to_itself(kind: type) -> None:
    x = [np.array([0.1]), np.array([0.9]), *np.array([[0.3], [0.5], [0.7]])]
    y = np.array([1.0, 1.0, -1.0, 0.6, -1.0])  # the same left and right
    home = [SPACE.subspace(0)] * 5
    counts, spread = np.array([4, 1, 1, 1, 1]), np.array([0.6, 0, 0, 0, 0])
    often = Data(SPACE, home, x, y, 5, n_values=counts, spread=spread)
    model = kind(SPACE)
    model.fit(often)
    top = model.scale.from_score(np.array([1.0]))[0]
    left, right = (top - model.observed_means()[:2]).abs().tolist()
    assert left < right
    mean, variance = model.posteriors(batches_of(often))
    assert torch.allclose(mean, model.observed_means(), atol=1e-6)
    assert variance[0] < variance[1]


@pytest.mark.parametrize("kind", [*MODELS, IndependentGPs])
def test_running_configs_leave_the_repeats_as_they_are(kind: type) -> None:
    data, _ = measure(3)
    model = kind(SPACE)
    model.fit(data)
    running = model.with_pending([SPACE.subspace(0)] * 2, [np.array([0.35]), np.array([0.85])])
    (before, _), (after, _) = (one.posteriors(batches_of(data)) for one in (model, running))
    assert torch.allclose(before, after, atol=1e-6)


def test_draws_of_functions_have_the_noise_of_means() -> None:
    data, _ = measure(4)
    model = IndependentGPs(SPACE)
    model.fit(data)
    rng, x = np.random.default_rng(0), torch.linspace(0, 1, 6, dtype=torch.float64)[:, None]
    part = model.model(SPACE.subspace(0))
    with torch.no_grad():
        draws = torch.stack([PosteriorDraw(part, rng)(x) for _ in range(1500)])
        mean, variance = part.posterior(SPACE.subspace(0), x)
    assert torch.allclose(draws.mean(0), mean, atol=0.05)
    assert torch.allclose(draws.std(0), variance.sqrt(), atol=0.04)


def test_rows_that_the_repeats_do_not_belong_to_have_none() -> None:
    data, _ = measure(5)
    model = OneHotGP(SPACE)
    model.fit(data)
    assert model.repeats_of(15).n_values.tolist() == data.n_values.tolist()
    assert model.repeats_of(14).n_values.tolist() == [1.0] * 14


def test_equal_values_say_that_there_is_no_noise() -> None:
    data, _ = measure(6)
    model = OneHotGP(SPACE)
    model.fit(replace(data, spread=np.zeros(15)))
    assert float(model.noise_variance()) < 1e-4


def test_spread_on_a_logarithmic_scale_goes_by_the_slope() -> None:
    scale = Scale(mean=0.3, sd=2.0, shift=5.0)
    y, step = np.array([-4.0, 0.0, 4.9]), 1e-6
    slope = (scale.from_score(y + step) - scale.from_score(y - step)) / (2 * step)
    assert scale.slope(y) == pytest.approx(slope, rel=1e-5)
    assert [scale.to_score(z) for z in scale.from_score(y)] == pytest.approx(y)
    counts, spread = np.array([2, 3, 1]), np.array([0.1, 0.2, 0.0])
    home = [SPACE.subspace(0)] * 3
    data = Data(SPACE, home, [np.zeros(1)] * 3, y, n_values=counts, spread=spread)
    repeats = Repeats.of_data(data, scale.from_score(y), scale)
    assert repeats.spread == pytest.approx([0.1 * slope[0] ** 2, 0.2 * slope[1] ** 2, 0.0])
    raised = scale.from_score(y)
    raised[0] += 0.5
    repeats = Repeats.of_data(data, raised, scale)
    assert repeats.degrees.tolist() == [0.0, 2.0, 0.0]
    assert repeats.spread[0] == 0.0
