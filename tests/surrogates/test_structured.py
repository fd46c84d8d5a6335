"""The structured GP: what it learns, and that it takes anything a search can give it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from nasbo.history.data import Data
from nasbo.space import Config, load_space
from nasbo.surrogates import structured
from nasbo.surrogates.base import FitError, as_batches, batches_of
from nasbo.surrogates.structured import StructuredGP

from .conftest import Observe

ROOT = Path(__file__).parents[2]
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


def jenatton(config: Config) -> float:
    inner = {"x4": 0.1, "x5": 0.2, "x6": 0.3, "x7": 0.4}
    (name,) = inner.keys() & config.keys()
    return -(config[name] ** 2 + inner[name] + config.get("r8", config.get("r9")))


@pytest.fixture(params=[False, True], ids=["without attention", "with attention"])
def fitted(request: pytest.FixtureRequest, observe: Observe) -> tuple[StructuredGP, Data]:
    space = load_space("simulation")
    model = StructuredGP(space, is_shared=request.param)
    observations = observe(space, jenatton, n=24)
    model.fit(observations)
    return model, observations


def test_it_comes_close_to_what_it_has_seen(fitted: tuple[StructuredGP, Data]) -> None:
    model, seen = fitted
    mean, variance = model.posteriors(batches_of(seen))
    z = (seen.scores - seen.scores.mean()) / seen.scores.std()
    assert np.abs(mean.numpy() - z).max() < 0.1
    assert variance.max() < 0.05
    assert float(model.observed_means().max()) == pytest.approx(mean.max().item())


def test_it_is_unsure_elsewhere(fitted: tuple[StructuredGP, Data]) -> None:
    model, seen = fitted
    _, here = model.posteriors(batches_of(seen))
    _, there = model.posterior(seen.subspaces[0], torch.rand(20, 2, dtype=torch.float64))
    assert there.mean() > 3 * here.mean()


def test_posterior_gradient_is_the_derivative(fitted: tuple[StructuredGP, Data]) -> None:
    model, seen = fitted
    x = torch.tensor([[0.0, 0.37]], dtype=torch.float64, requires_grad=True)
    mean, variance = model.posterior(seen.subspaces[0], x)
    (gradient,) = torch.autograd.grad(mean.sum() + variance.sum(), x)
    step = torch.tensor([[0.0, 1e-3]], dtype=torch.float64)
    up, down = (sum(model.posterior(seen.subspaces[0], x + s)) for s in (step, -step))
    assert gradient[0, 1].item() == pytest.approx(((up - down) / 2e-3).item(), rel=0.02, abs=1e-3)


def test_joint_posterior_agrees_with_the_marginals(
    fitted: tuple[StructuredGP, Data],
) -> None:
    model, seen = fitted
    batches = [(s, torch.rand(3, s.n_free, dtype=torch.float64)) for s in seen.subspaces[:4]]
    mean, covariance = model.joint_posterior(batches)
    marginal, variance = model.posteriors(batches)
    assert torch.allclose(mean, marginal)
    assert torch.allclose(covariance.diagonal(), variance, atol=1e-8)


def test_pending_configs_keep_the_mean_and_cut_the_variance(
    fitted: tuple[StructuredGP, Data],
) -> None:
    model, seen = fitted
    pending = [np.array([0.0, 0.9]), np.array([1.0, 0.1])]
    extended = model.with_pending(seen.subspaces[:2], pending)
    rows = as_batches(seen.subspaces[:2], pending)
    before, after = model.posteriors(rows), extended.posteriors(rows)
    assert torch.allclose(before[0], after[0], atol=1e-6)
    noise = np.exp(model.theta[model._noise])
    assert (after[1] < 0.3 * before[1] + noise).all()
    assert (after[1] < before[1]).all()
    again = model.posteriors(rows)
    assert torch.equal(again[1], before[1])
    assert float(extended.observed_means().max()) == float(model.observed_means().max())


def test_branches_with_the_same_names_learn_from_each_other(observe: Observe) -> None:
    space = load_space(BRANCHES)
    rows = observe(space, bowl, n=36)
    for at in range(len(rows)):  # branch c is seen twice only
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


@pytest.mark.parametrize("y", [[np.nan, 1.0], [np.inf, 1.0], [1.0]])
def test_unusable_scores_are_a_fit_error(y: list[float], observe: Observe) -> None:
    space = load_space("svm")
    rows = observe(space, lambda config: 0.0, n=len(y))
    with pytest.raises(FitError, match="finite"):
        StructuredGP(space).fit(Data(space, rows.subspaces, rows.x, np.array(y)))


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


def fit_cash() -> list[float]:
    """Hyperparameters after a fit to scores drawn from a seed."""
    space, rng = load_space("cash"), np.random.default_rng(0)
    subspaces = [space.subspace(at % 6) for at in range(18)]
    x = [subspace.sample(1, rng)[0] for subspace in subspaces]
    model = StructuredGP(space)
    model.fit(Data(space, subspaces, x, rng.standard_normal(18), 12))
    return [float(value) for value in model.theta]


PROGRAM = """
import json, sys, torch
from tests.surrogates.test_structured import fit_cash
torch.set_num_threads(int(sys.argv[1]))
print(json.dumps(fit_cash()))
"""


def test_another_process_fits_the_same() -> None:
    run = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(torch.get_num_threads())]
    there = subprocess.run(run, capture_output=True, check=True, cwd=ROOT).stdout
    assert json.loads(there) == fit_cash()


def test_global_state_stays(observe: Observe) -> None:
    torch.manual_seed(3)
    before, dtype = torch.random.get_rng_state(), torch.get_default_dtype()
    space = load_space("simulation")
    StructuredGP(space).fit(observe(space, jenatton, n=8))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_default_dtype() == dtype
