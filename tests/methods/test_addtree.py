"""Algorithm 2 of the Add-Tree paper: bounds per vertex, summed along the paths."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from nasbo.history.data import Data
from nasbo.methods.addtree import VertexBounds, _BestBelow, _configs, best_path
from nasbo.search import Search
from nasbo.space import Space, load_space
from nasbo.space.walk import ROOT
from nasbo.surrogates.add_tree import AddTreeGP
from nasbo.testing import SPACES
from tests.methods import taste


def fitted(space: Space, n: int = 16) -> tuple[AddTreeGP, Data]:
    rng = np.random.default_rng(0)
    subspaces = [space.random_subspace(rng) for _ in range(n)]
    x = [s.sample(1, rng)[0] for s in subspaces]
    y = np.array([float(row.sum()) + s.index % 3 for s, row in zip(subspaces, x, strict=True)])
    model, seen = AddTreeGP(space), Data(space, subspaces, x, y)
    model.fit(seen)
    return model, seen


def test_bound_of_a_vertex_is_the_largest_there(nested_space: Space) -> None:
    model, seen = fitted(nested_space)
    bounds = VertexBounds(model, seen, np.random.default_rng(0))
    key = ("top=right", 0)
    grid = torch.linspace(0, 1, 101, dtype=torch.float64)[:, None]
    mean, variance = model.vertex_posterior(key, grid)
    beta = 0.2 * math.log(2 * len(seen))  # the vertex has one parameter
    values = mean + math.sqrt(beta) * variance.sqrt()
    assert bounds[key].scores[0] >= float(values.max()) - 1e-6
    assert bounds[key].scores[0] == pytest.approx(float(values.max()), abs=1e-2)


@pytest.mark.parametrize("shape", ["nested", "repeated", "thousands"])
def test_best_path_through_the_tree_is_the_best_of_all(shape: str) -> None:
    """Dynamic programming from the leaves finds the same as a search of every subspace."""
    space = load_space(SPACES[shape])
    model, seen = fitted(space)
    bounds = VertexBounds(model, seen, np.random.default_rng(0))
    best, _ = _BestBelow(bounds).group(space.parameters, ROOT)
    picked = range(0, space.n_subspaces, max(1, space.n_subspaces // 400))
    sums = [sum(float(bounds[key].scores[0]) for key in space.subspace(at).path) for at in picked]
    assert best >= max(sums) - 1e-9
    found = best_path(bounds, lambda subspace, x: False, np.random.default_rng(0))
    assert found is not None
    assert found.score == pytest.approx(best)


def test_taken_configs_give_way_to_the_next_best(finite_space: Space) -> None:
    model, seen = fitted(finite_space)
    bounds = VertexBounds(model, seen, np.random.default_rng(0))
    taken: set[str] = set()
    scores = []
    while found := best_path(
        bounds, lambda s, x: str(s.decode(x)) in taken, np.random.default_rng(0)
    ):
        taken.add(str(found.subspace.decode(found.x)))
        scores.append(found.score)
    assert len(taken) == 5
    assert scores[0] == max(scores)


@pytest.mark.parametrize("acquisition", ["ei", "ucb"])
def test_lists_may_be_empty(acquisition: str) -> None:
    u = {"type": "float", "range": [0, 1]}
    space = {"n": {"type": "int", "range": [0, 3], "submodule": {"u": u}}}
    search = Search(space, method="addtree", acquisition=acquisition)
    for trial in search.ask(5):
        search.tell(trial, float(trial.config["n"]))
    assert {trial.source for trial in search.ask(2)} == {"model"}


def test_combinations_come_in_the_order_of_their_sums(nested_space: Space) -> None:
    model, seen = fitted(nested_space)
    bounds = VertexBounds(model, seen, np.random.default_rng(0))
    subspace = next(s for s in nested_space.subspaces() if len(s.path) > 1)
    sizes = [len(bounds[key].scores) for key in subspace.path]
    found = list(_configs(bounds, subspace))
    assert len(found) == math.prod(sizes)
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert len({tuple(x) for x, _ in found}) == len(found)


def test_few_configs_inside_the_limits_are_found_by_the_bounds() -> None:
    search = Search(taste.TREE, method="addtree", acquisition="ucb", limits=taste.few)
    taste.check_few_are_found(search, 6)
