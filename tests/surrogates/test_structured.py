"""Structured GP: what it learns, and robustness to all data that a search can have."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nasbo.gp.priors import lengthscale_mean
from nasbo.history.data import Data
from nasbo.space import Config, load_space
from nasbo.surrogates import structured
from nasbo.surrogates.base import batches_of
from nasbo.surrogates.structured import StructuredGP
from nasbo.testing.spaces import jenatton

from .conftest import Observe

NUMBER = {"type": "float", "range": [0, 1]}
BRANCHES = {
    "algorithm": {
        "type": "choice",
        "range": ["a", "b", "c"],
        "submodule": {branch: {"p": NUMBER, "q": NUMBER} for branch in "abc"},
    }
}


def bowl(config: Config) -> float:
    """The same response in all branches, plus a constant for each."""
    offset = {"a": 0.0, "b": 0.5, "c": 1.0}[config["algorithm"]]
    return offset - 4 * (config["p"] - 0.3) ** 2 - 2 * (config["q"] - 0.6) ** 2


def test_branches_with_the_same_names_learn_from_each_other(observe: Observe) -> None:
    space = load_space(BRANCHES)
    rows = observe(space, bowl, n=36)
    for at in range(len(rows)):  # branch c is seen only twice
        if at > 8 and rows.subspaces[at].index == 2:
            rows.subspaces[at] = space.subspace(at % 2)
    y = np.array([bowl(s.decode(x)) for s, x in zip(rows.subspaces, rows.x, strict=True)])
    model = StructuredGP(space)
    model.fit(Data(space, rows.subspaces, rows.x, y, 6))
    grid = torch.rand(200, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    truth = np.array([bowl(space.subspace(2).decode(x.numpy())) for x in grid])
    mean, _ = model.posterior(space.subspace(2), grid)
    assert np.corrcoef(mean.numpy(), truth)[0, 1] > 0.95


@pytest.mark.parametrize("name", ["svm", "nas_cifar10", "nas_cifar10_conditional"])
def test_constant_scores_and_repeated_rows_do_no_harm(name: str, observe: Observe) -> None:
    space = load_space(name)
    once = observe(space, lambda config: 1.0, n=6)
    twice = Data(space, [*once.subspaces] * 2, [*once.x] * 2, np.ones(12), 6)
    model = StructuredGP(space)
    model.fit(twice)
    mean, variance = model.posteriors(batches_of(once))
    assert torch.allclose(mean, torch.zeros_like(mean), atol=1e-6)
    assert torch.isfinite(variance).all()


def test_many_rows_are_thinned_for_the_hyperparameters_only(
    observe: Observe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structured, "MAX_FIT_ROWS", 15)
    space = load_space("simulation")
    observations = observe(space, jenatton, n=40)
    model = StructuredGP(space)
    model.fit(observations)
    mean, _ = model.posteriors(batches_of(observations))
    z = (observations.scores - observations.scores.mean()) / observations.scores.std()
    assert np.corrcoef(mean.numpy(), z)[0, 1] > 0.95


def test_very_many_rows_are_thinned_for_the_posterior_too(observe: Observe) -> None:
    space = load_space("simulation")
    observations = observe(space, jenatton, n=60)
    model = StructuredGP(space, max_rows=30)
    model.fit(observations)
    best = int(np.argmax(observations.scores))
    mean, _ = model.posteriors(batches_of(observations))
    z = (observations.scores - observations.scores.mean()) / observations.scores.std()
    assert mean[best].item() == pytest.approx(z[best], abs=0.1)
    assert float(model.observed_means().max()) == pytest.approx(mean.max().item(), abs=0.05)
    assert np.corrcoef(mean.numpy(), z)[0, 1] > 0.95


def test_lengthscales_grow_a_priori_with_the_number_of_free_parameters() -> None:
    small = load_space({f"x{i}": NUMBER for i in range(3)})
    large = load_space({f"x{i}": NUMBER for i in range(30)})
    assert structured.largeness(small) == 1.0
    assert structured.largeness(large) == pytest.approx(10.0)
    assert structured.largeness(load_space(BRANCHES)) == 1.0  # two of its parameters are free
    for space, factor in ((small, 1.0), (large, 10.0)):
        priors, n = StructuredGP(space).priors, len(space.subspace(0).coordinates)
        expected = lengthscale_mean(n) + np.log(factor)
        assert priors.means[:n] == pytest.approx([expected] * n)
        assert priors.means[n] == pytest.approx(np.log(structured.WHOLE_WEIGHT / factor))
