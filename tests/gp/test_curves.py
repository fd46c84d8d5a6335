"""The kernel of learning curves against its formula, and its derivatives."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nasbo.gp.curves import CurveKernel, CurvePairs
from nasbo.gp.priors import Priors

LOG_STEPS = np.log(np.array([1.0, 0.33, 0.04, 1.0, 0.11, 0.04]))
TRIAL = np.array([0, 0, 0, 1, 1, 2])


def setting() -> tuple[CurveKernel, np.ndarray, np.ndarray]:
    priors, rng = Priors(), np.random.default_rng(0)
    kernel = CurveKernel.add_to(priors)
    config = rng.standard_normal((3, 3))[TRIAL]
    return kernel, np.array(priors.means) + 0.3 * rng.standard_normal(4), config @ config.T


def test_covariances_follow_the_formula() -> None:
    kernel, theta, K = setting()
    rho, reach = 1 / (1 + math.exp(-theta[kernel.sharing])), math.exp(theta[kernel.reach])
    mean, own = math.exp(theta[kernel.mean]), math.exp(theta[kernel.own])
    found, _ = CurvePairs(kernel, LOG_STEPS, TRIAL).apply(theta, K)
    for i, s in enumerate(LOG_STEPS):
        for j, t in enumerate(LOG_STEPS):
            near = math.exp(-abs(s - t) / reach)
            expected = K[i, j] * (rho + (1 - rho) * near) + mean * near
            if TRIAL[i] == TRIAL[j]:
                expected += own * (near - math.exp(s / reach) * math.exp(t / reach))
            assert found[i, j] == pytest.approx(expected)
    assert np.linalg.eigvalsh(found).min() > -1e-9


def test_full_trainings_are_the_rows_of_the_last_step() -> None:
    kernel, theta, K = setting()
    found, _ = CurvePairs(kernel, LOG_STEPS, TRIAL).apply(theta, K)
    factors, summands = kernel.at_the_end(theta, LOG_STEPS)
    assert found[0] == pytest.approx(K[0] * factors + summands)
    assert found[3] == pytest.approx(K[3] * factors + summands)


def test_pull_is_the_derivative() -> None:
    kernel, theta, K = setting()
    rng = np.random.default_rng(1)
    by_rows = rng.standard_normal(K.shape)
    by_rows = by_rows + by_rows.T
    pairs = CurvePairs(kernel, LOG_STEPS, TRIAL)
    gradient = np.zeros(4)
    by_configs = pairs.apply(theta, K)[1](by_rows, gradient)

    def loss(theta: np.ndarray, K: np.ndarray) -> float:
        return float((pairs.apply(theta, K)[0] * by_rows).sum())

    for at in range(4):
        move = 1e-6 * np.eye(4)[at]
        slope = (loss(theta + move, K) - loss(theta - move, K)) / 2e-6
        assert gradient[at] == pytest.approx(slope, rel=1e-5, abs=1e-6)
    move = 1e-6 * rng.standard_normal(K.shape)
    slope = (loss(theta, K + move) - loss(theta, K - move)) / 2
    assert (by_configs * move).sum() == pytest.approx(slope, rel=1e-5)
