"""What every GP behind a method promises: it learns, conditions, and fails loudly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from nasbo.history.data import Data
from nasbo.space import Config, Space, load_space
from nasbo.surrogates.add_tree import AddTreeGP
from nasbo.surrogates.arc import ArcGP
from nasbo.surrogates.base import FitError, Surrogate, as_batches, batches_of
from nasbo.surrogates.independent import IndependentGPs
from nasbo.surrogates.lengthscales import shortest
from nasbo.surrogates.mixed import MixedGP
from nasbo.surrogates.one_hot import OneHotGP
from nasbo.surrogates.structured import StructuredGP
from nasbo.surrogates.tree import TreeGP
from tests.conftest import SPACES

from .conftest import Observe

Make = Callable[[Space], Surrogate]
MODELS: dict[str, Make] = {
    "add_tree_se": AddTreeGP,
    "add_tree_matern": lambda space: AddTreeGP(space, "matern"),
    "arc": ArcGP,
    "independent": IndependentGPs,
    "mixed": MixedGP,
    "one_hot": OneHotGP,
    "tree": TreeGP,
    "tree_fourier": lambda space: TreeGP(space, "fourier"),
}
Fitted = tuple[Surrogate, Data]


def jenatton(config: Config) -> float:
    inner = {"x4": 0.1, "x5": 0.2, "x6": 0.3, "x7": 0.4}
    (name,) = inner.keys() & config.keys()
    return -float(config[name] ** 2 + inner[name] + config.get("r8", config.get("r9")))


@pytest.fixture(params=sorted(MODELS), scope="module")
def make(request: pytest.FixtureRequest) -> Make:
    return MODELS[request.param]


@pytest.fixture
def fitted(make: Make, observe: Observe) -> Fitted:
    space = load_space("simulation")
    model, seen = make(space), observe(space, jenatton, n=24)
    model.fit(seen)
    return model, seen


def test_it_comes_close_to_what_it_has_seen(fitted: Fitted) -> None:
    model, seen = fitted
    mean, variance = model.posteriors(batches_of(seen))
    z = (seen.scores - seen.scores.mean()) / seen.scores.std()
    assert np.abs(mean.numpy() - z).max() < 0.2
    assert variance.max() < 0.1
    assert float(model.observed_means().max()) == pytest.approx(mean.max().item())
    best = model.scale.to_score(float(model.observed_means().max()))
    assert best == pytest.approx(seen.scores.max(), abs=0.1)


def test_gradient_is_the_derivative(fitted: Fitted) -> None:
    model, seen = fitted
    x = torch.tensor([[0.0, 0.37]], dtype=torch.float64, requires_grad=True)
    mean, variance = model.posterior(seen.subspaces[0], x)
    (gradient,) = torch.autograd.grad(mean.sum() + variance.sum(), x)
    step = torch.tensor([[0.0, 1e-4]], dtype=torch.float64)
    up, down = (sum(model.posterior(seen.subspaces[0], x + s)) for s in (step, -step))
    slope = float((up - down).detach() / 2e-4)
    assert gradient[0, 1].item() == pytest.approx(slope, rel=0.02, abs=1e-3)


def test_joint_posterior_agrees_with_the_marginals(fitted: Fitted) -> None:
    model, seen = fitted
    generator = torch.Generator().manual_seed(0)
    batches = [
        (s, torch.rand(2, s.n_free, generator=generator, dtype=torch.float64))
        for s in (*seen.subspaces[:4], seen.subspaces[0])
    ]
    mean, covariance = model.joint_posterior(batches)
    marginal, variance = model.posteriors(batches)
    assert torch.allclose(mean, marginal, atol=1e-8)
    assert torch.allclose(covariance.diagonal(), variance, atol=1e-7)
    assert torch.allclose(covariance, covariance.T, atol=1e-9)
    assert torch.linalg.eigvalsh(covariance).min() > -1e-8


def test_order_of_rows_does_not_matter(fitted: Fitted) -> None:
    model, seen = fitted
    rows = [(s, torch.from_numpy(x[None])) for s, x in zip(seen.subspaces, seen.x, strict=True)]
    forward, backward = model.posteriors(rows), model.posteriors(rows[::-1])
    assert torch.allclose(forward[0], backward[0].flip(0), atol=1e-8)
    assert torch.allclose(forward[1], backward[1].flip(0), atol=1e-8)


def test_correlations_are_those_of_the_prior(fitted: Fitted) -> None:
    model, seen = fitted
    rows = batches_of(seen)
    x = torch.from_numpy(seen.x[5][None])
    found = model.correlations(seen.subspaces[5], x, rows)
    assert found is not None
    assert found.shape == (24,)
    assert found[5].item() == pytest.approx(1.0)
    assert found.abs().max() <= 1.0 + 1e-9
    assert int(found.argmax()) == 5
    turned = model.correlations(seen.subspaces[7], torch.from_numpy(seen.x[7][None]), rows)
    assert turned is not None
    assert turned[5].item() == pytest.approx(found[7].item(), abs=1e-9)


@pytest.mark.parametrize("name", ["add_tree_se", "arc", "one_hot", "structured"])
def test_lengthscales_by_name(name: str, observe: Observe) -> None:
    """The score waves along the first number and does not depend on the second."""
    kinds = {"type": "choice", "range": ["a", "b", "c"]}
    unit = {"type": "float", "range": [0, 1]}
    space = load_space({"wave": unit, "idle": unit, "kind": kinds})
    model = (MODELS | {"structured": StructuredGP})[name](space)
    model.fit(observe(space, lambda config: float(np.sin(9.0 * config["wave"])), n=40))
    lengths = model.lengthscales()
    assert set(lengths) == {"wave", "idle", "kind"}
    assert 0.05 < lengths["wave"] < 1.0 < lengths["idle"]
    assert lengths["kind"] > lengths["wave"]


@pytest.mark.parametrize("name", ["add_tree_se", "arc", "one_hot", "structured"])
@pytest.mark.parametrize("shape", sorted(SPACES))
def test_every_parameter_with_a_lengthscale_has_its_label(
    name: str, shape: str, observe: Observe
) -> None:
    space = load_space(SPACES[shape])
    model = (MODELS | {"structured": StructuredGP})[name](space)
    model.fit(observe(space, lambda config: float(len(str(config)) % 7), n=12))
    labels = {
        slot.label
        for number in range(min(space.n_subspaces, 200))
        for slot in space.subspace(number).slots
        if slot.parameter.n_levels != 1 and not (slot.is_fixed and name == "add_tree_se")
    }
    lengths = model.lengthscales()
    assert labels <= set(lengths)
    assert all(length > 0 for length in lengths.values())


def test_the_arc_has_the_lengthscale_of_small_steps() -> None:
    """A step of 0.001 is as far in the embedding as it is in units of the lengthscale."""
    space = load_space(
        {"x": {"type": "float", "range": [0, 1]}, "c": {"type": "choice", "range": [1, 2]}}
    )
    model = ArcGP(space)
    model.theta = torch.linspace(-1.0, 1.0, len(model.priors.means), dtype=torch.float64)
    rows = torch.tensor([[0.4, 0.0], [0.401, 0.0], [0.4, 1.0]], dtype=torch.float64)
    points = model.embed(model.theta, model.features([(space.subspace(0), rows)]))
    lengths = model.lengthscales()
    assert float((points[0] - points[1]).norm()) == pytest.approx(0.001 / lengths["x"], rel=1e-3)
    assert float((points[0] - points[2]).norm()) == pytest.approx(1.0 / lengths["c"])


def test_a_sum_of_kernels_has_the_lengthscale_of_the_one_that_counts(observe: Observe) -> None:
    """S and the only unit both know the number: the one of next to no weight is not asked."""
    space = load_space({"x": {"type": "float", "range": [0, 1]}})
    model = StructuredGP(space)
    model.fit(observe(space, lambda config: config["x"], n=4))
    scales, weights = [0, 2], [1, 3]  # of S and of the unit, as the priors were added
    for strong in (0, 1):
        model.theta[weights] = [-20.0, -20.0]
        model.theta[weights[strong]] = 0.0
        model.theta[scales] = np.log([0.3, 4.0])
        assert model.lengthscales()["x"] == pytest.approx([0.3, 4.0][strong], rel=1e-3)
    model.theta[weights] = [0.0, 0.0]
    assert 0.3 < model.lengthscales()["x"] < 0.6


def test_the_shortest_lengthscale_of_a_name_counts() -> None:
    assert shortest([("a", 2.0), ("b", 3.0), ("a", 1.0), ("a", 4.0)]) == {"a": 1.0, "b": 3.0}


def test_pending_configs_keep_the_mean_and_cut_the_variance(fitted: Fitted) -> None:
    model, seen = fitted
    pending = [np.array([0.0, 0.93]), np.array([1.0, 0.07])]
    rows = as_batches(seen.subspaces[:2], pending)
    before = model.posteriors(rows)
    extended = model.with_pending(seen.subspaces[:2], pending)
    after = extended.posteriors(rows)
    assert torch.allclose(before[0], after[0], atol=1e-4)
    assert (after[1] < before[1]).all()
    assert after[1].max() < 0.5 * before[1].max()
    assert torch.equal(model.posteriors(rows)[1], before[1])
    assert float(extended.observed_means().max()) == float(model.observed_means().max())
    assert model.with_pending([], []) is model


def test_pending_configs_of_subspaces_never_seen(make: Make, observe: Observe) -> None:
    space = load_space(SPACES["thousands"])
    model = make(space)
    model.fit(observe(space, lambda config: config["x"], n=12))
    other = space.subspace(space.n_subspaces - 1)
    x = np.full(other.n_free, 0.0)
    rows = as_batches([other], [x])
    _, before = model.posteriors(rows)
    _, after = model.with_pending([other], [x]).posteriors(rows)
    assert float(after) < 0.9 * float(before)
    mean, covariance = model.joint_posterior([*rows, *rows])
    assert mean.shape == (2,)
    assert float(covariance[0, 1]) == pytest.approx(float(covariance[0, 0]))


@pytest.mark.parametrize("shape", sorted(SPACES))
def test_spaces_of_every_shape(make: Make, shape: str, observe: Observe) -> None:
    space = load_space(SPACES[shape])
    seen = observe(space, lambda config: float(len(str(config)) % 7), n=12)
    model = make(space)
    model.fit(seen)
    mean, variance = model.posteriors(batches_of(seen))
    assert mean.shape == variance.shape == (12,)
    assert torch.isfinite(mean).all()
    assert (variance > 0).all()


def test_bad_scores_are_refused(make: Make, observe: Observe) -> None:
    space = load_space("simulation")
    seen = observe(space, jenatton, n=4)
    for y in (np.array([1.0, np.nan, 2.0, 3.0]), np.array([1.0])):
        bad = Data(space, seen.subspaces[: len(y)], seen.x[: len(y)], y)
        with pytest.raises(FitError, match="at least two finite scores"):
            make(space).fit(bad)


def test_constant_scores_are_no_trouble(make: Make, observe: Observe) -> None:
    space = load_space("simulation")
    model = make(space)
    model.fit(observe(space, lambda config: 3.0, n=10))
    assert float(model.observed_means().max()) == pytest.approx(0.0, abs=1e-9)
