"""One GP per subspace, and functions drawn from their posteriors."""

from __future__ import annotations

import torch

from nasbo.space import load_space
from nasbo.surrogates.independent import IndependentGPs

from .conftest import Observe


def length(config: dict) -> float:
    return float(len(str(config)) % 6)


def test_subspaces_share_nothing(observe: Observe) -> None:
    space = load_space("simulation")
    seen = observe(space, length, n=16)
    model = IndependentGPs(space)
    model.fit(seen)
    batches = [(space.subspace(at), torch.rand(2, 2, dtype=torch.float64)) for at in (0, 1, 0)]
    _, covariance = model.joint_posterior(batches)
    assert (covariance[:2, 2:4] == 0).all()
    assert (covariance[:2, 4:] != 0).any()


def test_unseen_subspaces_have_the_prior(observe: Observe) -> None:
    space = load_space("simulation")
    model = IndependentGPs(space)
    seen = observe(space, length, n=16)
    rows = [at for at, s in enumerate(seen.subspaces) if s.index != 3]
    model.fit(
        type(seen)(
            space, [seen.subspaces[r] for r in rows], [seen.x[r] for r in rows], seen.y[rows]
        )
    )
    x = torch.rand(5, 2, dtype=torch.float64)
    mean, variance = model.posterior(space.subspace(3), x)
    assert torch.equal(mean, torch.zeros(5, dtype=torch.float64))
    assert torch.allclose(variance, torch.ones(5, dtype=torch.float64))
