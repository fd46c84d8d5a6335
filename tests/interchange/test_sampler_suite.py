"""The tests that Optuna has for samplers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from nasbo.optuna import NasboSampler


class _Suite(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    pass


class TestRandom(_Suite):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: NasboSampler("random", seed=0)


class TestAttnBO(_Suite):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: NasboSampler(seed=0)
