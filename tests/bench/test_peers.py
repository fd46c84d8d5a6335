"""Methods of other packages behind our interface, on small spaces of every shape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from gpytorch.mlls import ExactMarginalLogLikelihood

from nasbo.bench.peers.blocks import Blocks, Hyperparameters
from nasbo.bench.peers.columns import TreeColumns
from nasbo.bench.peers.hierarchical import (
    HierarchicalGP,
    HierarchicalSurrogate,
    botorch_model,
    read_hyperparameters,
)
from nasbo.bench.peers.hyperopt import Hyperopt
from nasbo.bench.spec import parse_method
from nasbo.history import config_key
from nasbo.methods.base import Task
from nasbo.methods.exclusion import Excluded
from nasbo.search import Search
from nasbo.space import Space, load_space
from nasbo.surrogates.base import as_batches, batches_of
from nasbo.testing import SPACES
from nasbo.testing.searches import MethodCase, after_design, check_configs
from nasbo.testing.spaces import objective
from tests.methods import taste

SHAPES = sorted(set(SPACES) - {"finite"})
PEERS = ["hyperopt", pytest.param("hierarchical", marks=pytest.mark.slow)]


def search_with(label: str, space: Space, seed: int = 0) -> Search:
    """A search after its design, with one config failed and one still running."""
    spec = parse_method(label)
    return after_design(MethodCase(spec.method, spec.values), space, seed)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("peer", "n"), [("hyperopt", 3), ("hierarchical", 2)])
def test_peers_suggest_valid_new_configs_of_their_own(peer: str, n: int, shape: str) -> None:
    space = load_space(SPACES[shape])
    search = search_with(peer, space)
    asked = search.ask(n)
    check_configs(search)
    reasons = [trial.info.get("reason") for trial in asked]
    assert [trial.source for trial in asked] == ["model"] * n, reasons


@pytest.mark.parametrize("label", PEERS)
def test_finite_spaces_are_used_up(label: str) -> None:
    search = Search(SPACES["finite"], method=parse_method(label).method)
    while trials := search.ask(1):
        search.tell(trials[0], objective(search.space, trials[0].config))
    assert len({config_key(trial.config) for trial in search.trials}) == 5


@pytest.mark.parametrize("label", PEERS)
def test_one_seed_one_answer(label: str) -> None:
    space = load_space(SPACES["nested"])
    first, second = (search_with(label, space, 2).ask(2) for _ in range(2))
    assert [trial.config for trial in first] == [trial.config for trial in second]


@pytest.mark.parametrize("label", PEERS)
def test_results_decide_what_comes_next(label: str) -> None:
    space = load_space(SPACES["flat"])
    configs = []
    for sign in (1.0, -1.0):
        search = Search(space, method=parse_method(label).method, seed=1)
        for trial in search.ask(12):
            search.tell(trial, sign * objective(space, trial.config))
        configs.append([trial.config for trial in search.ask(2)])
    assert configs[0] != configs[1]


def test_hyperopt_asks_for_good_values_more_often() -> None:
    method = parse_method("hyperopt").method
    taste.check_good_values_are_asked_for(Search(taste.SPACE, method=method, seed=1))


def test_hyperopt_is_told_what_happened(any_space: Space) -> None:
    search = Search(any_space, method="random")
    for trial in search.ask(6):
        search.tell(trial, float(trial.id))
    pending = [trial.config for trial in search.ask(1)]
    rows, keys = search.history.rows(), Excluded(search.history.keys)
    task = Task(any_space, rows, pending, keys, 1, np.random.default_rng(0), 5)
    method = Hyperopt(any_space)
    trials = method._trials(task)
    assert [t["result"].get("loss") for t in trials.trials] == [-s for _, s in rows] + [None] * len(
        pending
    )
    for document, (trial, _) in zip(trials.trials, rows, strict=False):
        assert method._config(document["misc"]["vals"]) == trial.config


@pytest.mark.slow
def test_hierarchical_finds_the_minimum_of_a_branch() -> None:
    space = load_space(SPACES["nested"])
    search = Search(space, method=parse_method("hierarchical").method, seed=0)

    def value(config: dict[str, object]) -> float:
        return (float(config["gamma"]) - 0.3) ** 2 if config["top"] == "right" else 1.0  # type: ignore[arg-type]

    for n in (8, 1, 1, 1, 1):
        for trial in search.ask(n):
            search.tell(trial, value(trial.config))
    assert search.best.value is not None
    assert search.best.value < 1e-3


def rows_of(space: Space, n: int = 12) -> tuple[TreeColumns, torch.Tensor, list[dict[str, object]]]:
    rng = np.random.default_rng(0)
    configs = [space.sample(rng) for _ in range(n)]
    subspaces = [space.subspace_of(config) for config in configs]
    points = [s.encode(c) for s, c in zip(subspaces, configs, strict=True)]
    columns = TreeColumns(space)
    return columns, columns.rows(as_batches(subspaces, points)), configs


def test_columns_tell_configs_apart_and_say_what_exists(any_space: Space) -> None:
    columns, rows, configs = rows_of(any_space)
    assert rows.shape == (len(configs), columns.n_columns)
    assert float(rows.min()) >= 0.0
    assert float(rows.max()) <= 1.0
    same = [[config_key(a) == config_key(b) for a in configs] for b in configs]
    alike = (rows[:, None] == rows[None]).all(-1)
    assert alike.tolist() == same
    listed = [c for values in columns.dependencies.values() for cs in values.values() for c in cs]
    assert len(set(listed)) == len(listed)
    for column, values in columns.dependencies.items():
        for value, children in values.items():
            inactive = (rows[:, column] - value).abs() > 1e-9
            assert bool((rows[inactive][:, children] == 0).all())


def test_columns_are_differentiable_in_numbers() -> None:
    space = load_space(SPACES["flat"])
    (subspace,) = space.subspaces()
    x = torch.tensor([[0.3, 0.5, 0.25]], dtype=torch.float64, requires_grad=True)
    TreeColumns(space).rows([(subspace, x)]).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[1.0, 1.0, 0.0]]


def fitted(shape: str, **options: object) -> tuple[HierarchicalSurrogate, Task]:
    space = load_space(SPACES[shape])
    search = search_with("hierarchical", space)
    task = Task(space, search.history.rows(), [], Excluded(), 1, np.random.default_rng(0), 3)
    surrogate = HierarchicalGP(space, **options).make_surrogate(task)  # type: ignore[arg-type]
    surrogate.fit(task.data)
    return surrogate, task


def random_model(shape: str) -> tuple[Any, Hyperparameters, torch.Tensor, torch.Tensor]:
    """BoTorch's model with random hyperparameters, and ours with the same ones."""
    columns, rows, configs = rows_of(load_space(SPACES[shape]))
    z = torch.linspace(-1.0, 1.0, len(configs), dtype=torch.float64)
    model = botorch_model(columns, rows, z)
    generator = torch.Generator().manual_seed(0)
    for name, parameter in model.named_parameters():
        if "noise" not in name:
            noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter.data = parameter.data + 0.3 * noise
    model.likelihood.noise = 0.02
    return model, read_hyperparameters(model), rows, z


@pytest.mark.parametrize("shape", ["flat", "nested", "repeated", "thousands"])
def test_kernel_and_density_are_botorchs_own(shape: str) -> None:
    model, theta, rows, z = random_model(shape)
    columns = TreeColumns(load_space(SPACES[shape]))
    blocks = Blocks(columns.n_columns, columns.dependencies)
    with torch.no_grad():
        K = model.covar_module(rows, rows).to_dense()
        assert torch.allclose(blocks.gram(theta, rows, rows), K, atol=1e-7)
        assert torch.allclose(blocks.gram_of(theta, blocks.pairs(rows)), K, atol=1e-7)
        assert torch.allclose(blocks.diagonal(theta, rows), K.diagonal(), atol=1e-7)
        mll = ExactMarginalLogLikelihood(model.likelihood, model)
        wanted = float(mll(model.train()(rows), z)) * len(z)
        found = float(blocks.log_density(theta, blocks.pairs(rows), z))
    # BoTorch has added its own jitter to a noise of nothing; single precision in its priors.
    assert found == pytest.approx(wanted, rel=1e-5)


def test_both_fits_go_to_the_same_place() -> None:
    surrogates = [fitted("flat", fit=fit, iterations=300) for fit in ("fast", "botorch")]
    densities = []
    for surrogate, task in surrogates:
        rows = surrogate._columns.rows(batches_of(task.data))
        z = (task.data.scores - task.data.scores.mean()) / task.data.scores.std()
        with torch.no_grad():
            pairs = surrogate._blocks.pairs(rows)
            found = surrogate._blocks.log_density(surrogate.theta, pairs, torch.from_numpy(z))
        densities.append(float(found))
    assert densities[0] == pytest.approx(densities[1], abs=0.2)
    assert densities[0] >= densities[1] - 0.05


def test_posterior_is_botorchs_own() -> None:
    surrogate, task = fitted("repeated", iterations=20)
    observations, space = task.data, task.space
    rows = surrogate._columns.rows(batches_of(observations))
    z = torch.from_numpy(
        (observations.scores - observations.scores.mean()) / observations.scores.std()
    )
    model = botorch_model(surrogate._columns, rows, z)
    theta = surrogate.theta
    for columns, part, weight in zip(
        model.covar_module.partition, model.covar_module.kernels, theta.weights, strict=True
    ):
        part.base_kernel.lengthscale = theta.lengthscales[columns]
        part.outputscale = weight
    model.mean_module.constant.data = theta.mean
    model.likelihood.noise = theta.noise
    rng = np.random.default_rng(1)
    batches = [(s, torch.from_numpy(s.sample(4, rng))) for s in space.subspaces()]
    with torch.no_grad():
        wanted = model.posterior(surrogate._columns.rows(batches))
        mean, variance = surrogate.posteriors(batches)
    assert torch.allclose(mean, wanted.mean[:, 0], atol=1e-4)
    assert torch.allclose(variance, wanted.variance[:, 0], atol=1e-4)


def test_pending_configs_lower_the_variance_where_they_are() -> None:
    surrogate, task = fitted("nested", iterations=10)
    subspace = task.space.subspace(0)
    x = np.full(subspace.n_free, 0.77)
    after = surrogate.with_pending([subspace], [x])
    point = torch.from_numpy(x[None])
    (mean, variance), (same, less) = (one.posterior(subspace, point) for one in (surrogate, after))
    assert float(same) == pytest.approx(float(mean), abs=1e-6)
    assert float(less) < float(variance)
    assert math.isfinite(float(surrogate.observed_means().max()))
    assert surrogate.with_pending([], []) is surrogate
    joint_mean, K = after.joint_posterior([(subspace, point)])
    assert float(joint_mean) == pytest.approx(float(same))
    assert float(K) == pytest.approx(float(less))
