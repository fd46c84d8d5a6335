"""Columns, units, types and feature rows of spaces."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nasbo.gp.units import Layout
from nasbo.space import Subspace, load_space

SPACES = ["simulation", "svm", "xgboost", "cash", "nas_cifar10", "nas_cifar10_conditional"]


def rows_of(layout: Layout, subspace: Subspace, x: list[list[float]]) -> torch.Tensor:
    return layout.rows([(subspace, torch.tensor(x, dtype=torch.float64))]).features


@pytest.mark.parametrize("name", SPACES)
def test_every_subspace_has_its_place(name: str) -> None:
    space = load_space(name)
    layout, rng = Layout(space), np.random.default_rng(0)
    for _ in range(20):
        subspace = space.random_subspace(rng)
        rows = layout.rows([(subspace, torch.from_numpy(subspace.sample(3, rng)))])
        assert rows.features.shape == (3, layout.n_features)
        n_units = len(
            {(s.branch, s.index) for s in subspace.coordinates if not s.is_fixed or s.index}
        )
        n_decisions = sum(one.is_fixed and not one.index for one in subspace.coordinates)
        assert rows.active.sum(1).tolist() == [1 + n_units + n_decisions] * 3


def test_blocks_of_a_network_are_units_of_one_type() -> None:
    layout = Layout(load_space("nas_cifar10"))
    assert sorted(len(units) for units in layout.types) == [1, 7]
    assert len(layout.decisions) == 1
    assert layout.mean_active_units() == 6.5  # 4 to 7 blocks and the root


def test_structural_parameters_of_a_block_belong_to_its_unit() -> None:
    layout = Layout(load_space("nas_cifar10_conditional"))
    assert len(layout.decisions) == 1
    blocks = [unit for unit in layout.units if unit.branch == "nums_block[]"]
    assert len(blocks) == 7
    names = [layout.columns[number].name for number in blocks[0].columns]
    assert "conv_op" in names
    assert "expand_ratio" not in names


def test_one_name_under_different_parents_is_one_column() -> None:
    layout = Layout(load_space("svm"))
    assert [column.name for column in layout.columns].count("gamma") == 1
    with_gamma_alone = [units for units in layout.types if len(units) == 2]
    assert len(with_gamma_alone) == 1  # sigmoid and rbf; poly also has a degree


def test_unique_names_with_the_same_ranges_are_units_of_one_type() -> None:
    layout = Layout(load_space("simulation"))
    kinds = [{layout.columns[layout.units[u].columns[0]].name for u in t} for t in layout.types]
    assert kinds == [{"r8", "r9"}, {"x4", "x5", "x6", "x7"}]


def test_columns_of_a_type_by_ranges_are_in_the_same_order() -> None:
    unit, wide = ({"type": "float", "range": [0, top]} for top in (1, 5))
    branches = {0: {"a": unit, "b": wide}, 1: {"c": wide, "d": unit}, 2: {"e": unit, "f": unit}}
    layout = Layout(
        load_space({"s": {"type": "choice", "range": [0, 1, 2], "submodule": branches}})
    )
    names = [
        [[layout.columns[c].name for c in layout.units[unit].columns] for unit in units]
        for units in layout.types
    ]
    assert names == [[["a", "b"], ["d", "c"]], [["e", "f"]]]


def test_different_choices_are_at_distance_one() -> None:
    space = load_space({"c": {"type": "choice", "range": ["a", "b", "c"]}})
    rows = rows_of(Layout(space), space.subspace(0), [[0.0], [0.5], [1.0]])
    assert torch.allclose(torch.cdist(rows, rows), 1.0 - torch.eye(3, dtype=torch.float64))


def test_numbers_are_centred_and_absent_ones_are_zero() -> None:
    space = load_space("simulation")
    layout = Layout(space)
    features = rows_of(layout, space.subspace(0), [[1.0, 0.25]])
    by_name = {column.name: float(features[0, column.start]) for column in layout.columns}
    assert by_name["r8"] == 0.5
    assert by_name["x4"] == -0.25
    assert by_name["x5"] == by_name["x6"] == by_name["r9"] == 0.0


def test_rows_pass_gradients_to_numbers_only() -> None:
    space = load_space("nas_cifar10")
    subspace = space.subspace(0)
    x = torch.full((1, subspace.n_free), 0.5, dtype=torch.float64, requires_grad=True)
    Layout(space).rows([(subspace, x)]).features.sum().backward()
    assert x.grad is not None
    is_number = torch.tensor([one.parameter.is_ordered for one in subspace.free])
    assert (x.grad[0] == is_number).all()
