"""Rows of a subspace's unit cube: samples, moves, neighbours, projections."""

from __future__ import annotations

import numpy as np
import pytest

from nasbo.space import load_space

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
    "dose": {"type": "ordinal", "range": ["none", "low", "high", "very high"]},
}


@pytest.mark.parametrize("name", ["simulation", "cash", "nas_cifar10", "mixed"])
def test_draws_moves_and_neighbours_are_real_configs(name: str) -> None:
    space = load_space(MIXED if name == "mixed" else name)
    rng = np.random.default_rng(0)
    for subspace in space.subspaces():
        drawn = subspace.candidates(20, rng)
        for rows in (drawn, subspace.perturb(drawn, rng), subspace.neighbours(drawn[0])):
            assert rows.shape[1] == subspace.n_free
            real = [subspace.encode(subspace.decode(row)) for row in rows]
            assert np.allclose(rows, np.reshape(real, rows.shape), atol=1e-12)
        changed = (np.abs(subspace.neighbours(drawn[0]) - drawn[0]) > 1e-9).sum(1)
        assert (changed == 1).all()


def test_uniform_rows_cover_all_levels() -> None:
    subspace = load_space(MIXED).subspace(0)
    rows = subspace.candidates(400, np.random.default_rng(0))
    modes = [subspace.decode(row)["mode"] for row in rows]
    widths = [subspace.decode(row)["width"] for row in rows]
    assert min(modes.count(mode) for mode in "xyz") > 90
    assert min(widths.count(width) for width in (16, 32, 64, 128)) > 60


def test_grid_and_draws_have_every_level_of_log_integers() -> None:
    space = load_space({"k": {"type": "int", "range": [1, 101], "log": True}})
    subspace, rng = space.subspace(0), np.random.default_rng(0)
    grid, drawn = (
        [subspace.decode(row)["k"] for row in rows]
        for rows in (subspace.candidates(96, rng), subspace.sample(5_000, rng))
    )
    assert grid == list(range(1, 101))
    assert sorted(set(drawn)) == grid


def test_projection_keeps_common_values() -> None:
    space = load_space(MIXED)
    a, b = space.subspaces()
    row = a.candidates(1, np.random.default_rng(0))[0]
    projected = b.project(a, row, 5, np.random.default_rng(1))
    for config in (b.decode(x) for x in projected):
        source = a.decode(row)
        assert all(config[name] == source[name] for name in ("width", "mode"))
        assert config["rate"] == pytest.approx(source["rate"])
