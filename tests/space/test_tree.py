"""Spaces and subspaces: counts, indices, validation, the unit cube."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from nasbo.errors import ConfigError
from nasbo.space import Space, load_space


def test_counts(
    nested_space: Space, repeated_space: Space, thousands_space: Space, finite_space: Space
) -> None:
    assert nested_space.n_subspaces == 4
    assert repeated_space.n_subspaces == 3
    assert thousands_space.n_subspaces == sum(4**n for n in range(1, 7))
    assert [sub.n_configs for sub in finite_space.subspaces()] == [3, 1, 1]


def test_numbers_and_configs_agree(any_space: Space) -> None:
    rng = np.random.default_rng(0)
    step = max(any_space.n_subspaces // 50, 1)
    for index in range(0, any_space.n_subspaces, step):
        subspace = any_space.subspace(index)
        config = subspace.sample_config(rng)
        assert any_space.subspace_of(config).index == index == subspace.index
        assert any_space.canonical(json.loads(json.dumps(config))) == config
        assert subspace.choices.items() <= config.items()


def test_sampling_is_uniform_over_the_subspaces(nested_space: Space) -> None:
    rng = np.random.default_rng(0)
    found = [nested_space.subspace_of(nested_space.sample(rng)).index for _ in range(2_000)]
    assert np.bincount(found) == pytest.approx([500] * 4, abs=90)


def test_same_seed_same_configs(any_space: Space) -> None:
    first, second = (
        [any_space.sample(np.random.default_rng(7)) for _ in range(3)] for _ in range(2)
    )
    assert first == second


def test_ids_are_readable_and_unique(nested_space: Space) -> None:
    assert [sub.id for sub in nested_space.subspaces()] == [
        "top=left,turn=0",
        "top=left,turn=1",
        "top=right",
        "top=none",
    ]
    values = [1, "1", "None", None, "a b", "a", "a,b=1", 2.5]
    space = load_space(
        {"a": {"type": "choice", "range": values, "submodule": dict.fromkeys(values)}}
    )
    assert len({sub.id for sub in space.subspaces()}) == len(values)
    assert load_space({"x": {"type": "float", "range": [0, 1]}}).subspace(0).id == "all"


def test_slots_tell_parent_and_place(thousands_space: Space) -> None:
    subspace = thousands_space.subspace_of({"n": 2, "op": [2, 1], "ratio": [5, None], "x": 0.5})
    told = [(one.label, one.parent, one.is_fixed) for one in subspace.coordinates]
    assert told == [
        ("n", "", True),
        ("op[1]", "n", True),
        ("ratio[1]", "op", False),
        ("op[2]", "n", True),
        ("x", "", False),
    ]
    assert subspace.choices == {"n": 2, "op": [2, 1]}
    assert subspace.id == "n=2,op=[2 1]"


@pytest.mark.parametrize("index", [-1, 4, 10**30])
def test_no_such_subspace(index: int, nested_space: Space) -> None:
    with pytest.raises(IndexError, match="0 <= index < 4 must hold"):
        nested_space.subspace(index)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "'top' is missing"),
        ({"top": "up", "flag": True}, "'top' must be one of"),
        ({"top": "right", "flag": True}, "'gamma' is missing"),
        ({"top": "none", "gamma": 0.5, "flag": True}, "'gamma' must be absent under top=none"),
        ({"top": "none", "flag": True, 3: 1}, "3 must be absent"),
        ({"top": "none", "flag": 1}, "'flag' must be one of True, False, got 1"),
        ({"top": "right", "gamma": [0.5], "flag": True}, r"got \[0.5\]"),
        ([], "must be a dict, got list"),
        (None, "must be a dict, got NoneType"),
    ],
)
def test_configs_that_do_not_belong(config: Any, words: str, nested_space: Space) -> None:
    with pytest.raises(ConfigError, match=words):
        nested_space.canonical(config)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"op": [2]}, "'op' must be a list of 2 entries"),
        ({"op": 2}, "'op' must be a list of 2 entries"),
        ({"op": None}, "'op' must be a list of 2 entries"),
        ({"ratio": [5, 6]}, r"'ratio\[2\]' must be null"),
        ({"ratio": [None, None]}, "'ratio' must be an integer"),
        ({"ratio": [5, None, None]}, "must be a list of 2"),
        ({"op": [2, 9]}, "'op' must be one of"),
        ({"n": 3}, "must be a list of 3"),
    ],
)
def test_lists_that_do_not_belong(
    change: dict[str, Any], words: str, thousands_space: Space
) -> None:
    good = {"n": 2, "op": [2, 1], "ratio": [5, None], "x": 0.5}
    assert thousands_space.canonical(good) == good
    with pytest.raises(ConfigError, match=words):
        thousands_space.canonical(good | change)


def test_tuples_become_lists_and_the_input_stays_whole(thousands_space: Space) -> None:
    given = {"n": 1, "op": (3,), "ratio": (None,), "x": 1}
    assert thousands_space.canonical(given) == {"n": 1, "op": [3], "ratio": [None], "x": 1.0}
    assert given == {"n": 1, "op": (3,), "ratio": (None,), "x": 1}


def test_unit_cube(any_space: Space) -> None:
    rng = np.random.default_rng(3)
    subspace = any_space.random_subspace(rng)
    x = subspace.sample(20, rng)
    assert x.shape == (20, subspace.n_free)
    assert np.allclose(subspace.snap(x), x)
    for row in x:
        config = subspace.decode(row)
        assert any_space.subspace_of(config).index == subspace.index
        assert np.allclose(subspace.encode(config), row)


def test_snap_moves_to_configs(flat_space: Space) -> None:
    subspace = flat_space.subspace(0)
    x = np.random.default_rng(0).uniform(-0.2, 1.2, (50, 3))
    snapped = subspace.snap(x)
    assert np.allclose(snapped, [subspace.encode(subspace.decode(row)) for row in x])
    assert set(np.round(snapped[:, 1] * 3, 9)) <= {0.0, 1.0, 2.0, 3.0}
    assert np.allclose(snapped[:, 0], np.clip(x[:, 0], 0, 1))


def test_all_configs_are_all(finite_space: Space, flat_space: Space) -> None:
    configs = [config for sub in finite_space.subspaces() for config in sub.all_configs()]
    assert configs == [{"a": "p", "b": b} for b in range(3)] + [{"a": "q"}, {"a": "r"}]
    assert flat_space.subspace(0).n_configs is None


def test_fingerprint_depends_on_everything_that_decides_configs() -> None:
    base: dict[str, Any] = {"type": "float", "range": [1, 2]}
    variants: list[dict[str, Any]] = [
        {"a": base},
        {"b": base},
        {"a": base | {"range": [1, 3]}},
        {"a": base | {"log": True}},
        {"a": base | {"type": "int"}},
        {"a": base, "b": base},
        {"b": base, "a": base},
    ]
    prints = [load_space(variant).fingerprint() for variant in variants]
    assert len(set(prints)) == len(variants)
    assert load_space({"a": {"range": "1.0...2.0", "type": "float"}}).fingerprint() == prints[0]


def test_spaces_too_large_for_machine_words() -> None:
    leaf = {"type": "choice", "range": [0, 1, 2, 3], "submodule": {0: None}}
    space = load_space({"n": {"type": "int", "range": [100, 201], "submodule": {"op": leaf}}})
    assert space.n_subspaces == sum(4**n for n in range(100, 201))
    rng = np.random.default_rng(0)
    config = space.sample(rng)
    assert space.subspace(space.subspace_of(config).index).choices == config
    lengths = {space.sample(rng)["n"] for _ in range(50)}
    assert lengths <= set(range(190, 201))
    assert not space.is_listable
