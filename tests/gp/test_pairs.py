"""Evidence on lists of pairs, against the dense formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from nasbo.gp.conditioning import FitError
from nasbo.gp.fit import FAILED, minimise
from nasbo.gp.kernel_sum import KernelSum
from nasbo.gp.pairs import PairEvidence
from nasbo.gp.rows import Rows
from nasbo.space import load_space
from nasbo.surrogates.structured import StructuredGP


def evidence_of(name: str, n: int) -> tuple[StructuredGP, PairEvidence, np.ndarray, Rows]:
    space, rng = load_space(name), np.random.default_rng(0)
    subspaces = [space.random_subspace(rng) for _ in range(n)]
    batches = [(s, torch.from_numpy(s.sample(1, rng))) for s in subspaces]
    model = StructuredGP(space)
    rows = model.features(batches)
    y = rng.standard_normal(n)
    return model, model.evidence(rows, y), y, rows


@pytest.mark.parametrize("name", ["cash", "nas_cifar10", "nas_cifar10_conditional"])
def test_value_is_the_negative_log_posterior(name: str) -> None:
    model, evidence, y, rows = evidence_of(name, 15)
    rng = np.random.default_rng(1)
    means, sds = np.array(model.priors.means), np.array(model.priors.sds)
    theta = means + 0.3 * rng.standard_normal(len(means))
    K = KernelSum(model.kernels, theta, rows).cross(rows)
    K += (math.exp(theta[model._noise]) + PairEvidence.jitter) * np.eye(15)
    _, log_determinant = np.linalg.slogdet(K)
    likelihood = -0.5 * (y @ np.linalg.solve(K, y) + log_determinant + 15 * math.log(2 * math.pi))
    prior = -0.5 * (((theta - means) / sds) ** 2).sum()
    assert evidence(theta)[0] == pytest.approx(-likelihood - prior, rel=1e-9)


def test_a_matrix_that_lost_its_definiteness_still_has_a_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, evidence, _, _ = evidence_of("cash", 40)
    theta = np.array(model.priors.means) + 3.0
    theta[model._noise] = -40.0
    for rounding in (-1e-5, -1e-3):
        monkeypatch.setattr(PairEvidence, "jitter", rounding)
        value, gradient = evidence(theta)
        assert value < FAILED
        assert np.isfinite(gradient).all()
    monkeypatch.setattr("nasbo.gp.pairs.MORE_JITTER", (0.0,))
    assert evidence(theta)[0] == FAILED


@pytest.mark.parametrize("name", ["cash", "nas_cifar10"])
def test_gradient_is_the_derivative(name: str) -> None:
    model, evidence, _, _ = evidence_of(name, 12)
    theta = np.array(model.priors.means) + 0.2
    _, gradient = evidence(theta)
    step = 1e-5
    for at in range(0, len(theta), 5):
        move = np.zeros_like(theta)
        move[at] = step
        slope = (evidence(theta + move)[0] - evidence(theta - move)[0]) / (2 * step)
        assert gradient[at] == pytest.approx(slope, abs=1e-6)


def test_maximise_improves_on_the_prior_means() -> None:
    model, evidence, _, _ = evidence_of("cash", 20)
    best = minimise(evidence, model.priors)
    assert evidence(best)[0] < evidence(np.array(model.priors.means))[0] - 0.1


def test_scores_that_are_not_finite_are_a_fit_error() -> None:
    model, evidence, _, _ = evidence_of("cash", 5)
    evidence._y[0] = np.nan
    with pytest.raises(FitError, match="finite"):
        minimise(evidence, model.priors, iterations=5)
