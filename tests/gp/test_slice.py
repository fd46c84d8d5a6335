"""Slice sampling, against the density that it is given."""

from __future__ import annotations

import numpy as np
import pytest

from nasbo.gp.slice import slice_sample


def test_moments_of_a_correlated_gaussian() -> None:
    covariance = np.array([[2.0, 0.9], [0.9, 0.5]])
    inverse, mean = np.linalg.inv(covariance), np.array([1.0, -2.0])

    def log_density(x: np.ndarray) -> float:
        return float(-0.5 * (x - mean) @ inverse @ (x - mean))

    rng = np.random.default_rng(0)
    draws = slice_sample(log_density, mean + 3.0, np.ones(2), 3000, rng, thin=3)[100:]
    assert draws.mean(0) == pytest.approx(mean, abs=0.12)
    assert np.cov(draws.T) == pytest.approx(covariance, abs=0.2)


def test_borders_are_kept() -> None:
    def log_density(x: np.ndarray) -> float:
        return 0.0 if 0 < x[0] < 1 else -np.inf

    draws = slice_sample(log_density, np.array([0.5]), np.ones(1), 2000, np.random.default_rng(1))
    assert draws.min() > 0
    assert draws.max() < 1
    assert draws.mean() == pytest.approx(0.5, abs=0.03)
    assert draws.std() == pytest.approx(np.sqrt(1 / 12), abs=0.02)


def test_same_seed_same_draws() -> None:
    def log_density(x: np.ndarray) -> float:
        return float(-(x @ x))

    first, second = (
        slice_sample(log_density, np.zeros(3), np.ones(3), 5, np.random.default_rng(4))
        for _ in range(2)
    )
    assert np.array_equal(first, second)
