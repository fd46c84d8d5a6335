"""Ensemble of small neural networks: what it learns, and what it is unsure of."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from nasbo.surrogates.mlp_ensemble import MLPEnsemble


def drawn(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Rows of [-0.5, 0.5]^6 and the scores of a function of two of the numbers."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 6)) - 0.5
    z = 2.5 * X[:, 0] + 6.0 * (X[:, 1] ** 2 - 1 / 12)
    return torch.from_numpy(X), torch.from_numpy(z)


def fitted(seed: int = 0) -> MLPEnsemble:
    ensemble = MLPEnsemble()
    ensemble.fit(*drawn(120, 0), seed)
    return ensemble


def test_it_predicts_other_rows() -> None:
    X, z = drawn(400, 1)
    mean, sd = fitted().predict(X)
    assert mean.shape == sd.shape == (400,)
    assert mean.dtype == sd.dtype == torch.float64
    assert float((mean - z).square().mean() / z.var()) < 0.1


def test_it_is_less_sure_far_from_the_data() -> None:
    ensemble, (X, _) = fitted(), drawn(50, 2)
    assert ensemble.predict(4 * X)[1].mean() > 3 * ensemble.predict(X)[1].mean()


def test_same_seed_same_networks_whatever_the_global_state() -> None:
    X, _ = drawn(20, 3)
    torch.manual_seed(1)
    first, state = fitted().predict(X)[0], torch.random.get_rng_state()
    torch.manual_seed(2)
    assert torch.equal(fitted().predict(X)[0], first)
    assert not torch.equal(fitted(seed=1).predict(X)[0], first)
    torch.manual_seed(1)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_networks_are_independent_of_each_other() -> None:
    _, sd = fitted().predict(drawn(50, 4)[0])
    assert float(sd.min()) > 0.001


@pytest.mark.parametrize("n", [2, 31, 33])
def test_constant_scores_and_few_rows_are_learned(n: int) -> None:
    X, _ = drawn(n, 5)
    ensemble = MLPEnsemble()
    ensemble.fit(X, torch.zeros(n), 0)
    mean, _ = ensemble.predict(X)
    assert float(mean.abs().max()) < 0.2
