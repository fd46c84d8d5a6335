"""Vertices and paths of a space."""

from __future__ import annotations

import pytest

from nasbo.space import Space, load_space
from nasbo.space.walk import ROOT
from nasbo.surrogates.add_tree import mean_path_length


def test_paths_of_a_nested_space(nested_space: Space) -> None:
    paths = {s.id: dict(s.path) for s in nested_space.subspaces()}
    assert paths["top=left,turn=0"] == {
        ROOT: [1],
        ("top=left", 0): [],
        ("top=left.turn=0", 0): [0],
    }
    assert paths["top=none"] == {ROOT: [0], ("top=none", 0): []}
    assert [one.name for one in nested_space.vertices["top=right", 0]] == ["gamma"]
    assert ("top=left", 0) not in nested_space.vertices
    assert mean_path_length(nested_space) == pytest.approx((3 + 3 + 2 + 2) / 4)


def test_elements_of_lists_are_vertices(repeated_space: Space) -> None:
    three = repeated_space.subspace(2)
    assert dict(three.path) == {("n[]", at): [2 * at - 2, 2 * at - 1] for at in (1, 2, 3)}
    assert set(repeated_space.vertices) == {("n[]", 1), ("n[]", 2), ("n[]", 3)}


def test_every_column_belongs_to_one_vertex(any_space: Space) -> None:
    for index in range(0, any_space.n_subspaces, max(1, any_space.n_subspaces // 50)):
        subspace = any_space.subspace(index)
        path = subspace.path
        assert {key for key, columns in path.items() if columns} <= set(any_space.vertices)
        assert sorted(c for columns in path.values() for c in columns) == [*range(subspace.n_free)]
        for key, columns in path.items():
            names = [subspace.free[column].name for column in columns]
            assert names == [one.name for one in any_space.vertices.get(key, ())]


def test_values_that_are_no_words_name_their_branches_alike() -> None:
    ops = {"3x3": {"a": {"type": "float", "range": [0, 1]}}, "none": {}}
    space = load_space({"op": {"type": "choice", "range": ["3x3", "none"], "submodule": ops}})
    (key,) = space.subspace(0).path
    assert list(space.vertices) == [key]
    assert space.subspace(1).path == {("op=none", 0): []}
