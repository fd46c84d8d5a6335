"""Neighbours of configs."""

from __future__ import annotations

import numpy as np

from nasbo.space import load_space
from nasbo.space.neighbours import complete, structural_neighbours, values_of


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
