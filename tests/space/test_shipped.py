"""Shipped spaces: their counts, and agreement with the paper."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from nasbo.cli import cli
from nasbo.space import load_space
from nasbo.space.load import SHIPPED

COUNTS = {"simulation": 4, "svm": 4, "xgboost": 2, "cash": 6, "nas_cifar10": 4}
PARAMETERS = {
    "simulation": [4, 4, 4, 4],
    "svm": [2, 4, 3, 3],
    "xgboost": [10, 3],
    "cash": [11, 4, 3, 5, 4, 4],
    "nas_cifar10": [29, 35, 41, 47],
}


@pytest.mark.parametrize("name", COUNTS)
def test_subspace_and_parameter_counts(name: str) -> None:
    space = load_space(SHIPPED / f"{name}.yaml")
    assert space.n_subspaces == COUNTS[name]
    assert [sub.n_parameters for sub in space.subspaces()] == PARAMETERS[name]


@pytest.mark.parametrize("name", COUNTS)
def test_show_json_has_the_documented_format(name: str) -> None:
    result = CliRunner().invoke(cli, ["space", "show", f"{name}.yaml", "--json"])
    assert result.exit_code == 0
    table = json.loads(result.stdout)
    assert set(table) == {"n_subspaces", "subspaces"}
    assert table["n_subspaces"] == len(table["subspaces"]) == COUNTS[name]
    assert all(set(row) == {"id", "choices", "n_parameters"} for row in table["subspaces"])
    assert [row["n_parameters"] for row in table["subspaces"]] == PARAMETERS[name]
    assert len({row["id"] for row in table["subspaces"]}) == COUNTS[name]


def test_conditional_is_counted_but_not_listed() -> None:
    result = CliRunner().invoke(cli, ["space", "show", "nas_cifar10_conditional", "--json"])
    assert json.loads(result.stdout) == {"n_subspaces": 21_760, "subspaces": []}
    assert 4**4 + 4**5 + 4**6 + 4**7 == 21_760


def test_conditional_entries_exist_only_under_their_operation() -> None:
    space, rng = load_space("nas_cifar10_conditional"), np.random.default_rng(0)
    seen = set()
    for _ in range(200):
        config = space.sample(rng)
        assert len(config["conv_op"]) == len(config["expand_ratio"]) == config["nums_block"]
        for operation, ratio in zip(config["conv_op"], config["expand_ratio"], strict=True):
            assert (ratio in (5, 6)) if operation == 2 else (ratio is None)
        assert space.canonical(config) == config
        seen.add(space.subspace_of(config).index)
    assert len(seen) > 150


def test_mnasnet_has_an_expansion_only_under_inverted_residuals() -> None:
    space, rng = load_space("mnasnet"), np.random.default_rng(0)
    assert space.n_subspaces == 3**7
    seen = set()
    for _ in range(200):
        config = space.sample(rng)
        assert config["blocks"] == 7
        for operation, ratio in zip(config["operation"], config["expansion"], strict=True):
            assert (ratio in (3, 6)) if operation == "mbconv" else (ratio is None)
        assert {len(config[name]) for name in config if isinstance(config[name], list)} == {7}
        assert space.canonical(config) == config
        seen.add(space.subspace_of(config).index)
    assert len(seen) > 180
    plain = space.subspace_of({**config, "operation": ["conv"] * 7, "expansion": [None] * 7})
    wide = space.subspace_of({**config, "operation": ["mbconv"] * 7, "expansion": [3] * 7})
    assert wide.n_parameters - plain.n_parameters == 7


def test_integer_ranges_are_right_open_and_powers_hold_their_value() -> None:
    space, rng = load_space("nas_cifar10"), np.random.default_rng(0)
    configs = [space.sample(rng) for _ in range(400)]
    assert {config["batch_size"] for config in configs} == {32, 64, 128}
    assert {config["nums_block"] for config in configs} == {4, 5, 6, 7}
    assert {config["step_size"] for config in configs} == set(range(70, 90))
    assert {config["stride_layer"] for config in configs} == {43, 44}
    assert {r for config in configs for r in config["expand_ratio"]} == {5, 6}
    assert {c for config in configs for c in config["nums_channel"]} == {1, 1.25, 1.3}


def test_one_name_in_exclusive_branches_is_one_name() -> None:
    svm = load_space("svm")
    assert svm.names == ("C", "kernel", "degree", "gamma")
    assert [sub.choices for sub in svm.subspaces()] == [
        {"kernel": kernel} for kernel in ("linear", "poly", "sigmoid", "rbf")
    ]


def test_all_shipped_files_load_and_check(tmp_path: Path) -> None:
    files = sorted(SHIPPED.glob("*.yaml"))
    assert {file.stem for file in files} == {*COUNTS, "nas_cifar10_conditional", "mnasnet"}
    for file in files:
        result = CliRunner().invoke(cli, ["space", "check", str(file)])
        assert result.exit_code == 0
        assert f"{load_space(file).n_subspaces} subspaces" in result.stdout
