"""log-EI, its maximisation in subspaces, and the choice of batches."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from scipy.stats import norm

from nasbo.acquisition import Chooser, default_acquisition, log_ei, maximise_per_subspace
from nasbo.acquisition.improvement import score_rows
from nasbo.acquisition.sampled import promising_subspaces
from nasbo.history import config_key
from nasbo.history.data import Data
from nasbo.space import Config, Space, Subspace, load_space
from nasbo.space.neighbours import complete, structural_neighbours, values_of
from nasbo.surrogates.structured import StructuredGP

NUMBER = {"type": "float", "range": [0, 1]}
MIXED = {
    "kind": {
        "type": "choice",
        "range": ["a", "b"],
        "submodule": {
            "a": {"rate": NUMBER, "size": {"type": "int", "range": [1, 101]}},
            "b": {"rate": NUMBER, "steps": {"type": "int", "range": [1, 1000], "log": True}},
        },
    },
    "width": {"type": "powerint2", "range": [4, 8]},
    "mode": {"type": "choice", "range": ["x", "y", "z"]},
}


def score(config: Config) -> float:
    wide = np.log2(config.get("width", 32)) - 5
    return -((config.get("rate", 0.5) - 0.7) ** 2) * 4 - wide**2 - (config.get("mode") == "x")


def observed(space: Space, n: int = 12, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    configs = [space.sample(rng) for _ in range(n)]
    subspaces = [space.subspace_of(config) for config in configs]
    x = [s.encode(c) for s, c in zip(subspaces, configs, strict=True)]
    return Data(space, subspaces, x, np.array([score(c) for c in configs]), n)


def fitted(space: Space, seen: Data) -> StructuredGP:
    model = StructuredGP(space)
    model.fit(seen)
    return model


def never(subspace: Subspace, x: np.ndarray) -> bool:
    return False


def test_log_ei_is_the_logarithm_of_the_expected_improvement() -> None:
    mean, sd, best = np.array([0.3, -2.0, 1.5]), np.array([0.5, 0.2, 1.0]), 0.7
    u = (mean - best) / sd
    expected = np.log(sd * (norm.pdf(u) + u * norm.cdf(u)))
    got = log_ei(torch.tensor(mean), torch.tensor(sd**2), best)
    assert np.allclose(got.numpy(), expected, rtol=1e-4)


@pytest.mark.parametrize("u", [-30.0, -5.0, -0.5, 0.0, 2.0])
def test_gradient_of_log_ei_is_the_derivative(u: float) -> None:
    mean = torch.tensor([0.3 * u + 0.7], dtype=torch.float64, requires_grad=True)
    variance = torch.tensor([0.09], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda m, v: log_ei(m, v, 0.7), (mean, variance))


def test_log_ei_has_a_slope_far_below_the_incumbent() -> None:
    mean = torch.tensor([-60.0], dtype=torch.float64, requires_grad=True)
    value = log_ei(mean, torch.ones(1, dtype=torch.float64), 0.0)
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert mean.grad is not None
    assert mean.grad.item() > 1.0


def test_maximum_beats_many_random_configs() -> None:
    space = load_space(MIXED)
    seen = observed(space)
    model = fitted(space, seen)
    found = maximise_per_subspace(
        model, list(space.subspaces()), seen, np.random.default_rng(0), never
    )
    assert [f.score for f in found] == sorted((f.score for f in found), reverse=True)
    assert {f.subspace.index for f in found} == {0, 1}
    for best in found:
        rows = best.subspace.candidates(3000, np.random.default_rng(1))
        (scores,) = score_rows(model, [(best.subspace, rows)])
        assert best.score >= scores.max() - 1e-3


@pytest.mark.parametrize("name", ["cash", "nas_cifar10", "xgboost"])
def test_found_rows_lie_on_levels(name: str) -> None:
    space = load_space(name)
    seen = observed(space, 8)
    subspaces = list(space.subspaces())
    found = maximise_per_subspace(
        fitted(space, seen), subspaces, seen, np.random.default_rng(0), never
    )
    assert len(found) == len(subspaces)
    for one in found:
        assert np.allclose(one.x, one.subspace.snap(one.x[None])[0], atol=1e-12)
        config = one.subspace.decode(one.x)
        assert space.canonical(config) == config
        assert np.allclose(one.subspace.encode(config), one.x, atol=1e-12)


def test_taken_configs_never_come_back_until_none_is_left() -> None:
    below = {"p": {"b": {"type": "int", "range": [0, 4]}}}
    space = load_space({"a": {"type": "choice", "range": ["p", "q"], "submodule": below}})
    seen = observed(space, 4)
    model, taken = fitted(space, seen), set()

    def is_taken(subspace: Subspace, x: np.ndarray) -> bool:
        return config_key(subspace.decode(x)) in taken

    for _ in range(5):  # 4 configs under p, 1 under q
        found = maximise_per_subspace(
            model, list(space.subspaces()), seen, np.random.default_rng(0), is_taken
        )
        key = config_key(found[0].subspace.decode(found[0].x))
        assert key not in taken
        taken.add(key)
    assert not maximise_per_subspace(
        model, list(space.subspaces()), seen, np.random.default_rng(0), is_taken
    )


def test_structural_neighbours_change_one_value_and_keep_the_rest() -> None:
    space = load_space("nas_cifar10_conditional")
    rng = np.random.default_rng(0)
    config = space.sample(rng)
    subspace = space.subspace_of(config)
    neighbours = list(structural_neighbours(space, subspace, config, rng))
    assert len(neighbours) == 3 + 3 * config["nums_block"]
    for neighbour in neighbours:
        other = space.subspace_of(neighbour)
        assert other.index != subspace.index
        assert neighbour["learning_rate"] == config["learning_rate"]
        assert neighbour["kernel_size"][:4] == config["kernel_size"][:4]


def test_complete_ignores_values_outside_the_range() -> None:
    space = load_space("svm")
    config = complete(space, {("kernel", 0): "poly", ("C", 0): -5.0}, np.random.default_rng(0))
    assert config["kernel"] == "poly"
    assert 0.001 <= config["C"] <= 1000
    assert values_of(space.subspace_of(config), config)["degree", 0] == config["degree"]


def choose(space: Space, acquisition: str, n: int, model: StructuredGP, seen: Data):
    chooser = Chooser(space, seen, np.random.default_rng(0), never)
    return chooser.choose(model, acquisition, n)


def test_batch_has_each_subspace_once_then_further_ones() -> None:
    space = load_space("simulation")
    seen = observed(space, 10)
    model = fitted(space, seen)
    two = choose(space, "log_ei", 2, model, seen)  # ten results: no visit
    ten = choose(space, "log_ei", 10, model, seen)
    assert [f.subspace.index for f in two] == [f.subspace.index for f in ten[:2]]
    assert sorted(f.subspace.index for f in ten[:4]) == [0, 1, 2, 3]
    assert sorted(f.subspace.index for f in ten[4:8]) == [0, 1, 2, 3]
    keys = {config_key(f.subspace.decode(f.x)) for f in ten}
    assert len(keys) == 10
    for first in ten[:4]:  # the second config of a subspace keeps away from the first
        second = next(f for f in ten[4:8] if f.subspace.index == first.subspace.index)
        assert np.abs(first.x - second.x).max() > 0.01


def test_every_fourth_config_visits_the_least_tried_subspace() -> None:
    space = load_space("simulation")
    visits = []
    for n in range(8, 13):
        seen = observed(space, n, seed=3)
        (found,) = choose(space, "log_ei", 1, fitted(space, seen), seen)
        counts = Counter(subspace.index for subspace in seen.subspaces)
        if found.is_visit:
            assert counts[found.subspace.index] == min(counts[at] for at in range(4))
        visits.append(found.is_visit)
    assert visits == [True, False, False, False, True]
    for n, is_due in ((9, False), (10, True), (11, True)):  # of three, one has number 12
        seen = observed(space, n, seed=3)
        three = choose(space, "log_ei", 3, fitted(space, seen), seen)
        assert [found.is_visit for found in three] == [is_due, False, False]
    whole = choose(space, "log_ei", 4, fitted(space, seen), seen)
    assert not any(found.is_visit for found in whole)


@pytest.mark.parametrize("acquisition", ["sampled_log_ei", "thompson"])
def test_many_subspaces(acquisition: str) -> None:
    space = load_space("nas_cifar10_conditional")
    assert default_acquisition(space) == "sampled_log_ei"
    assert default_acquisition(load_space("nas_cifar10")) == "log_ei"
    seen = observed(space, 15)
    found = choose(space, acquisition, 3, fitted(space, seen), seen)
    configs = [f.subspace.decode(f.x) for f in found]
    assert len({config_key(config) for config in configs}) == 3
    assert all(space.canonical(config) == config for config in configs)


def test_promising_subspaces_are_better_than_random_ones() -> None:
    space = load_space("nas_cifar10_conditional")
    seen = observed(space, 15)
    model, rng = fitted(space, seen), np.random.default_rng(0)
    promising = promising_subspaces(model, space, seen, rng, 6)
    assert len({subspace.index for subspace in promising}) == 6
    rest = [space.random_subspace(rng) for _ in range(6)]
    means = []
    for subspaces in (promising, rest):
        rows = [(s, s.candidates(50, rng)) for s in subspaces]
        means.append(np.mean([scores.max() for scores in score_rows(model, rows)]))
    assert means[0] > means[1]


def test_thompson_follows_the_posterior() -> None:
    space = load_space(MIXED)
    seen = observed(space, 40)
    found = choose(space, "thompson", 20, fitted(space, seen), seen)
    assert len(found) == 20
    chosen = np.mean([score(f.subspace.decode(f.x)) for f in found])
    assert chosen > seen.scores.mean()
