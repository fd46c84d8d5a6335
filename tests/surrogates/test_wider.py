"""A surrogate that is less sure of itself: the same means, wider by a factor."""

from __future__ import annotations

import numpy as np
import torch

from nasbo.space import Config, load_space
from nasbo.surrogates.base import batches_of
from nasbo.surrogates.structured import StructuredGP
from nasbo.surrogates.wider import Wider

from .conftest import Observe


def bowl(config: Config) -> float:
    return -sum((v - 0.3) ** 2 for v in config.values() if isinstance(v, float))


def test_only_the_spread_changes(observe: Observe) -> None:
    space = load_space("simulation")
    observations = observe(space, bowl, n=20)
    model = StructuredGP(space)
    model.fit(observations)
    wider = Wider(model, 3.0)
    new = batches_of(observe(space, bowl, n=6, seed=1))
    mean, variance = wider.inner.posteriors(new)
    assert torch.equal(wider.posteriors(new)[0], mean)
    torch.testing.assert_close(wider.posteriors(new)[1], 9.0 * variance)
    joint_mean, covariance = wider.joint_posterior(new)
    torch.testing.assert_close(joint_mean, mean)
    torch.testing.assert_close(covariance.diagonal(), 9.0 * variance, rtol=1e-4, atol=1e-6)
    assert wider.incumbent() == wider.inner.incumbent()
    assert wider.scale == wider.inner.scale


def test_running_configs_narrow_it(observe: Observe) -> None:
    space = load_space("simulation")
    model = StructuredGP(space)
    model.fit(observe(space, bowl, n=8))
    wider = Wider(model, 2.0)
    wider.fit(observe(space, bowl, n=20))
    subspace = space.subspace(0)
    x = np.full(subspace.n_free, 0.9)
    after = wider.with_pending([subspace], [x])
    place = torch.from_numpy(x[None])
    assert after.factor == 2.0
    assert wider.scale is model.scale
    assert after.posterior(subspace, place)[1] < 0.1 * wider.posterior(subspace, place)[1]
