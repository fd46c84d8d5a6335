"""Small spaces as fixtures, and the number of documents in property tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from nasbo.space import Space, load_space
from nasbo.testing import SPACES

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile(
    "quick", max_examples=300, deadline=None, derandomize=True, suppress_health_check=_QUIET
)
settings.register_profile(
    "thorough", max_examples=2_000, deadline=None, suppress_health_check=_QUIET
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(params=sorted(SPACES))
def any_space(request: pytest.FixtureRequest) -> Space:
    """Each of the small spaces in turn."""
    return load_space(SPACES[request.param])


@pytest.fixture
def flat_space() -> Space:
    return load_space(SPACES["flat"])


@pytest.fixture
def nested_space() -> Space:
    return load_space(SPACES["nested"])


@pytest.fixture
def repeated_space() -> Space:
    return load_space(SPACES["repeated"])


@pytest.fixture
def thousands_space() -> Space:
    return load_space(SPACES["thousands"])


@pytest.fixture
def finite_space() -> Space:
    return load_space(SPACES["finite"])
