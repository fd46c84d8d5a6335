"""Flat form of spaces for other packages: names, parents, and conversion of configs."""

from __future__ import annotations

import numpy as np
import pytest

from nasbo.errors import NasboError
from nasbo.methods.optional import import_optional
from nasbo.space import Space
from nasbo.space.flat import flatten, from_flat, to_flat
from nasbo.space.neighbours import complete, values_of


def test_configs_come_back(any_space: Space) -> None:
    rng = np.random.default_rng(0)
    known = {one.name for one in flatten(any_space)}
    for _ in range(20):
        config = any_space.sample(rng)
        flat = to_flat(any_space.subspace_of(config), config)
        assert set(flat) <= known

        assert from_flat(any_space, flat) == config
        values = values_of(any_space.subspace_of(config), config)
        assert complete(any_space, values, rng) == config


def test_exactly_the_parameters_exist_whose_parents_say_so(any_space: Space) -> None:
    rng = np.random.default_rng(1)
    listed = flatten(any_space)
    assert len({one.name for one in listed}) == len(listed)
    by_name = {one.name: one for one in listed}
    for _ in range(20):
        config = any_space.sample(rng)
        flat = to_flat(any_space.subspace_of(config), config)
        for one in listed:
            exists = one.parent == ""
            if one.parent in flat:
                parent = by_name[one.parent].parameter
                exists = parent.level_of(parent.from_flat(flat[one.parent])) in one.levels
            assert (one.name in flat) == exists


def test_missing_package_is_named() -> None:
    with pytest.raises(NasboError, match=r"method 'm' needs the package 'nowhere': pip install"):
        import_optional("nowhere.at_all", "m", "bench")
