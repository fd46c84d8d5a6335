"""Two-step expected improvement: the path first, then the leaf."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nasbo.acquisition import LogEI
from nasbo.methods import make_method
from nasbo.methods.base import Task
from nasbo.methods.exclusion import Excluded
from nasbo.space import load_space
from nasbo.surrogates.tree import TreeGP

from .functions import SMALL, searched


def test_the_path_of_the_largest_path_ei_is_taken() -> None:
    search = searched("tree", 10)
    space = load_space(SMALL)
    rows = search.history.rows()
    task = Task(space, rows, [], Excluded(search.history.keys), 1, np.random.default_rng(0), 0)
    model = TreeGP(space)
    model.fit(task.data)
    grid = torch.cartesian_prod(*[torch.linspace(0, 1, 41, dtype=torch.float64)] * 2)
    best = []
    for subspace in space.subspaces():
        mean, variance = model.path_posterior([(subspace, grid)])
        best.append(float(LogEI(float(model.observed_means().max())).score(mean, variance).max()))
    (suggestion,) = make_method("tree", space).propose(task)
    found = space.subspace_of(suggestion.config)
    assert found.index == int(np.argmax(best))

    # In that leaf, the shared parameter held, no other value of its own has a larger EI.
    x = torch.from_numpy(found.encode(suggestion.config)[None])
    others = x.repeat(41, 1)
    others[:, 1] = torch.linspace(0, 1, 41, dtype=torch.float64)
    mean, variance = model.posterior(found, torch.cat([x, others]))
    scores = LogEI(float(model.observed_means().max())).score(mean, variance)
    assert float(scores[0]) >= float(scores[1:].max()) - 1e-3


def test_full_variant_takes_the_largest_ei_of_all() -> None:
    search = searched("tree", 10)
    space = load_space(SMALL)
    rows = search.history.rows()
    task = Task(space, rows, [], Excluded(search.history.keys), 1, np.random.default_rng(0), 0)
    model = TreeGP(space)
    model.fit(task.data)
    (suggestion,) = make_method("tree", space, acquisition="full").propose(task)
    grid = torch.cartesian_prod(*[torch.linspace(0, 1, 41, dtype=torch.float64)] * 2)
    scores = [
        float(LogEI(float(model.observed_means().max())).score(*model.posterior(s, grid)).max())
        for s in space.subspaces()
    ]
    assert suggestion.info["log_ei"] >= max(scores) - 1e-2
    assert suggestion.info["log_ei"] == pytest.approx(max(scores), abs=1.0)
