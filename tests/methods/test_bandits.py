"""Bandits-BO: arms, Thompson draws, and hyperparameters by slice sampling."""

from __future__ import annotations

import numpy as np
import torch

from nasbo.methods.bandits import learn_by_slices
from nasbo.space import load_space
from nasbo.surrogates.independent import SubspaceGP

from .functions import SMALL, searched


def test_hyperparameters_are_draws_not_the_maximum() -> None:
    space = load_space(SMALL)
    subspace = space.subspace(0)
    rng = np.random.default_rng(0)
    x = list(subspace.sample(12, rng))
    z = torch.from_numpy(np.sin(5 * np.stack(x)[:, 1]))
    drawn = []
    for seed in (0, *range(24)):
        model = SubspaceGP(space, subspace)
        learn_by_slices(model, [subspace] * 12, x, z, np.random.default_rng(seed))
        drawn.append(model.theta)
    best = SubspaceGP(space, subspace)
    best.learn([subspace] * 12, x, z)
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[1], drawn[2])
    density = best.marginal([subspace] * 12, x, z)
    lost = [density.value(d.numpy()) - density.value(best.theta.numpy()) for d in drawn[1:]]
    assert min(lost) > 0
    # Draws from a normal density of d dimensions lose d / 2 in the mean: here d = 4.
    assert 1.0 < np.mean(lost) < 4.0


def test_draws_visit_several_arms_and_improve() -> None:
    search = searched("bandits", 18, seed=1)
    values = [trial.value for trial in search.trials if trial.value is not None]
    arms = [trial.subspace for trial in search.trials[8:]]
    assert len(set(arms)) >= 3
    assert min(values[8:]) < min(values[:8])
