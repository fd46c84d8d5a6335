"""Methods of other packages behind our seam, on small spaces of every shape."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from botorch.models.hierarchical.conditional_kernel_gp import HierarchicalConditionalKernelGP

from nasbo.bench.peers.columns import TreeColumns
from nasbo.bench.peers.hierarchical import HierarchicalGP
from nasbo.bench.peers.hyperopt import Hyperopt
from nasbo.bench.spec import parse_method
from nasbo.history import config_key
from nasbo.methods.base import Task
from nasbo.search import Search
from nasbo.space import Space, load_space
from nasbo.surrogates.base import as_batches
from tests.conftest import SPACES
from tests.contracts.test_methods import after_design, check, objective

SHAPES = sorted(set(SPACES) - {"finite"})


def search_with(label: str, space: Space, seed: int = 0) -> Search:
    """After the design, one config ended badly and one still runs."""
    spec = parse_method(label)
    search = Search(space, method=spec.method, seed=seed, **spec.values)
    for event in after_design("random", space, seed).events[1:]:
        search.record(event)
    return search


@pytest.mark.parametrize("shape", SHAPES)
def test_hyperopt_suggests_valid_new_configs_of_its_own(shape: str) -> None:
    space = load_space(SPACES[shape])
    search = search_with("hyperopt", space)
    asked = search.ask(3)
    check(space, search)
    reasons = [trial.info.get("reason") for trial in asked]
    assert [trial.source for trial in asked] == ["model"] * 3, reasons


@pytest.mark.parametrize("shape", ["one_leaf", "flat", "nested", "repeated"])
def test_hierarchical_suggests_valid_new_configs_of_its_own(shape: str) -> None:
    space = load_space(SPACES[shape])
    search = search_with("hierarchical[iterations=10]", space)
    asked = search.ask(2)
    check(space, search)
    reasons = [trial.info.get("reason") for trial in asked]
    assert [trial.source for trial in asked] == ["model"] * 2, reasons


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["many_leaves", "thousands"])
def test_hierarchical_on_large_spaces(shape: str) -> None:
    space = load_space(SPACES[shape])
    search = search_with("hierarchical", space)
    assert [trial.source for trial in search.ask(2)] == ["model"] * 2
    check(space, search)


@pytest.mark.parametrize("label", ["hyperopt", "hierarchical"])
def test_finite_spaces_are_used_up(label: str) -> None:
    search = Search(SPACES["finite"], method=parse_method(label).method)
    while trials := search.ask(1):
        search.tell(trials[0], objective(search.space, trials[0].config))
    assert len({config_key(trial.config) for trial in search.trials}) == 5


@pytest.mark.parametrize("label", ["hyperopt", "hierarchical[iterations=10]"])
def test_one_seed_one_answer(label: str) -> None:
    space = load_space(SPACES["nested"])
    first, second = (search_with(label, space, 2).ask(2) for _ in range(2))
    assert [trial.config for trial in first] == [trial.config for trial in second]


@pytest.mark.parametrize("label", ["hyperopt", "hierarchical"])
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
    space = {"x": {"type": "float", "range": [0, 1]}, "c": {"type": "choice", "range": ["a", None]}}
    search = Search(space, method=parse_method("hyperopt").method, seed=1)
    for _ in range(40):
        (trial,) = search.ask(1)
        penalty = 0.0 if trial.config["c"] is None else 1.0
        search.tell(trial, (trial.config["x"] - 0.2) ** 2 + penalty)
    late = search.trials[20:]
    assert sum(trial.config["c"] is None for trial in late) > 14
    assert np.median([abs(trial.config["x"] - 0.2) for trial in late]) < 0.2


def test_hyperopt_is_told_what_happened(any_space: Space) -> None:
    search = Search(any_space, method="random")
    for trial in search.ask(6):
        search.tell(trial, float(trial.id))
    pending = [trial.config for trial in search.ask(1)]
    rows, keys = search.history.rows(), set(search.history.keys)
    task = Task(any_space, rows, pending, keys, 1, np.random.default_rng(0), 5)
    method = Hyperopt(any_space)
    trials = method._trials(task)
    assert [t["result"].get("loss") for t in trials.trials] == [-s for _, s in rows] + [None] * len(
        pending
    )
    for document, (trial, _) in zip(trials.trials, rows, strict=False):
        assert method._config(document["misc"]["vals"]) == trial.config


def test_hierarchical_finds_the_minimum_of_a_branch() -> None:
    space = load_space(SPACES["nested"])
    search = Search(space, method=parse_method("hierarchical").method, seed=0, iterations=30)

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
    places = [s.encode(c) for s, c in zip(subspaces, configs, strict=True)]
    columns = TreeColumns(space)
    return columns, columns.rows(as_batches(subspaces, places)), configs


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


def test_posterior_is_botorchs_own() -> None:
    space = load_space(SPACES["repeated"])
    search = search_with("hierarchical", space)
    task = Task(space, search.history.rows(), [], set(), 1, np.random.default_rng(0), 3)
    surrogate = HierarchicalGP(space, iterations=20).make_surrogate(task)
    observations = task.observations
    surrogate.fit(observations)
    rows = surrogate._columns.rows(observations.batches)
    z = (observations.y - observations.y.mean()) / observations.y.std()
    model = HierarchicalConditionalKernelGP(
        rows, torch.from_numpy(z)[:, None], surrogate._columns.dependencies, outcome_transform=None
    )
    model.covar_module = surrogate._kernel
    model.mean_module.constant.data = surrogate._mean
    model.likelihood.noise = surrogate._noise
    batches = [
        (s, torch.from_numpy(s.sample(4, np.random.default_rng(1)))) for s in space.subspaces()
    ]
    with torch.no_grad():
        wanted = model.posterior(surrogate._columns.rows(batches))
        mean, variance = surrogate.posteriors(batches)
    assert torch.allclose(mean, wanted.mean[:, 0], atol=1e-4)
    assert torch.allclose(variance, wanted.variance[:, 0], atol=1e-4)


def test_pending_configs_lower_the_variance_where_they_are() -> None:
    space = load_space(SPACES["nested"])
    search = search_with("hierarchical", space)
    task = Task(space, search.history.rows(), [], set(), 1, np.random.default_rng(0), 3)
    surrogate = HierarchicalGP(space, iterations=10).make_surrogate(task)
    surrogate.fit(task.observations)
    subspace = space.subspace(0)
    x = np.full(subspace.n_free, 0.77)
    after = surrogate.with_pending([subspace], [x])
    place = torch.from_numpy(x[None])
    (mean, variance), (same, less) = (one.posterior(subspace, place) for one in (surrogate, after))
    assert float(same) == pytest.approx(float(mean), abs=1e-6)
    assert float(less) < float(variance)
    assert math.isfinite(surrogate.incumbent())
    assert surrogate.with_pending([], []) is surrogate
