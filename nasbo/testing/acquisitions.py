"""Contract of acquisitions: properties that the choice of configs relies on."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pytest
import torch

from nasbo.acquisition import Pointwise
from nasbo.acquisition.wider import Wider
from nasbo.history.data import Data
from nasbo.space import Space, load_space
from nasbo.surrogates.base import Surrogate, batches_of
from nasbo.surrogates.structured import StructuredGP
from nasbo.testing.spaces import MIXED, mixed_score

MEANS = torch.tensor([-30.0, -4.0, -0.5, 0.0, 0.4, 3.0], dtype=torch.float64)
VARIANCES = torch.tensor([0.01, 1.0, 0.3, 2.0, 0.09, 1.5], dtype=torch.float64)

Make = Callable[[], Pointwise]


class AcquisitionContract:
    """Tests that an acquisition which scores each config separately must pass.

    A subclass sets ``acquisition``, or has a fixture ``make`` of its own, e.g. with parameters.

    Attributes:
        acquisition: its class, or a function without arguments that makes it.
    """

    acquisition: ClassVar[Make]

    @pytest.fixture
    def make(self) -> Make:
        """Class or function that makes the acquisition under test."""
        return type(self).acquisition  # of the class: a function is not bound

    @pytest.fixture
    def seen(self) -> Data:
        """Results on a space with parameters of all types."""
        return sampled(load_space(MIXED))

    @pytest.fixture
    def model(self, seen: Data) -> Surrogate:
        """A surrogate, fitted to the results."""
        return fitted(seen)

    @pytest.fixture
    def prepared(self, make: Make, model: Surrogate, seen: Data) -> Pointwise:
        """The acquisition, prepared with the surrogate and the results."""
        return make().prepare(model, seen)

    def test_a_larger_mean_promises_more(self, prepared: Pointwise) -> None:
        scores = [prepared.score(MEANS + gain, VARIANCES) for gain in (0.0, 0.1, 1.0)]
        assert scores[0].shape == MEANS.shape
        assert (scores[1] > scores[0]).all()
        assert (scores[2] > scores[1]).all()

    @pytest.mark.parametrize("is_wide", [False, True])
    def test_gradient_is_that_of_finite_differences(
        self, prepared: Pointwise, is_wide: bool
    ) -> None:
        acquisition = Wider(prepared, 4.0) if is_wide else prepared
        moments = (MEANS.clone().requires_grad_(), VARIANCES.clone().requires_grad_())
        assert torch.autograd.gradcheck(acquisition.score, moments, atol=1e-4, rtol=1e-4)

    def test_a_batch_is_scored_as_its_rows_one_by_one(
        self, prepared: Pointwise, seen: Data
    ) -> None:
        score = prepared.under(fitted(sampled(seen.space, 20)))
        rows = batches_of(sampled(seen.space, 30, seed=1))
        alone = [score([(s, x[at : at + 1])]) for s, x in rows for at in range(len(x))]
        torch.testing.assert_close(score(rows), torch.cat(alone), rtol=1e-7, atol=1e-9)

    def test_scores_are_finite_far_below_the_best(self, prepared: Pointwise) -> None:
        mean = torch.tensor([-60.0], dtype=torch.float64, requires_grad=True)
        value = prepared.score(mean, torch.ones(1, dtype=torch.float64))
        (slope,) = torch.autograd.grad(value.sum(), mean)
        assert torch.isfinite(value).all()
        assert slope.item() > 0.5


def sampled(space: Space, n: int = 12, seed: int = 0) -> Data:
    """Uniform configs of a space like ``MIXED``, with their scores."""
    rng = np.random.default_rng(seed)
    configs = [space.sample(rng) for _ in range(n)]
    subspaces = [space.subspace_of(config) for config in configs]
    x = [s.encode(c) for s, c in zip(subspaces, configs, strict=True)]
    return Data(space, subspaces, x, np.array([mixed_score(c) for c in configs]), n)


def fitted(seen: Data) -> StructuredGP:
    """The surrogate of the default method, fitted."""
    model = StructuredGP(seen.space)
    model.fit(seen)
    return model
