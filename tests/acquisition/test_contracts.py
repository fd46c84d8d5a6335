"""Contract tests of all acquisitions of the registry."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm

from nasbo.acquisition import ACQUISITIONS, Acquisition, LogEI, LogPI, Pointwise, Thompson
from nasbo.acquisition.bounds import UCB, AddTreeUCB
from nasbo.acquisition.thompson import draw
from nasbo.acquisition.wider import Wider
from nasbo.space import load_space
from nasbo.testing import AcquisitionContract
from nasbo.testing.acquisitions import MEANS, VARIANCES, fitted, sampled
from nasbo.testing.spaces import MIXED

POINTWISE = [kind for kind in ACQUISITIONS.values() if issubclass(kind, Pointwise)]


class TestPointwise(AcquisitionContract):
    @pytest.fixture(params=[*POINTWISE, AddTreeUCB])
    def make(self, request: pytest.FixtureRequest) -> type[Acquisition]:
        kind: type[Acquisition] = request.param
        return kind


def test_registry_has_all_of_them() -> None:
    kinds = {LogEI, LogPI, UCB, Thompson}
    assert kinds <= set(ACQUISITIONS.values())


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
    data = sampled(space, 12)
    bound = AddTreeUCB(n_dimensions=3).prepare(fitted(data), data)
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
