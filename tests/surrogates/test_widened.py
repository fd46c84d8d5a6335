"""The widened surrogate: the same means, wider variances, whatever is running."""

from __future__ import annotations

import torch

from nasbo.space import Config, load_space
from nasbo.surrogates.structured import StructuredGP
from nasbo.surrogates.widened import Widened

from .conftest import Observe


def cost(config: Config) -> float:
    return -float(config["cost"])


def test_variances_are_multiplied_and_means_stay(observe: Observe) -> None:
    unit = {"type": "float", "range": [0, 1]}
    space = load_space({"cost": unit, "width": unit})
    seen, new = observe(space, cost, n=8), observe(space, cost, n=12)
    model = StructuredGP(space)
    model.fit(seen)
    running = (new.subspaces[-2:], new.x[-2:])
    for narrow in (model, model.with_pending(*running)):
        wide = Widened(model, 3.0)
        if narrow is not model:
            wide = wide.with_pending(*running)
        mean, variance = narrow.posteriors(new.batches)
        wide_mean, wide_variance = wide.posteriors(new.batches)
        assert torch.equal(wide_mean, mean)
        assert torch.allclose(wide_variance, 3.0 * variance)
        covariance = narrow.joint_posterior(new.batches)[1]
        assert torch.allclose(wide.joint_posterior(new.batches)[1], 3.0 * covariance)
        assert wide.incumbent() == narrow.incumbent()
    assert wide.scale == model.scale
