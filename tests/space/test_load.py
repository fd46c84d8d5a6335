"""Grammar of space files: the meaning of each form."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nasbo.errors import SpaceError
from nasbo.space import Space, find_space_file, load_space
from nasbo.space.document import MAX_NODES


def _text(text: str, folder: Path) -> Space:
    file = folder / "space.yaml"
    file.write_text(text, encoding="utf-8")
    return load_space(file)


@pytest.mark.parametrize(
    ("kind", "written", "low", "high"),
    [
        ("int", "[4...8]", 4, 7),
        ("int", "4...8", 4, 7),
        ("int", "\n    - 4...8", 4, 7),
        ("int", "[4, 8]", 4, 7),
        ("int", "[4.0, 8e0]", 4, 7),
        ("int", "[-1...1]", -1, 0),
        ("int", "[ -1 ... 1 ]", -1, 0),
        ("float", "[0.001...1000]", 0.001, 1000),
        ("float", "[1e-3...1e3]", 0.001, 1000),
        ("float", "[1e-3, 1E+3]", 0.001, 1000),
        ("float", "[-1, 1]", -1, 1),
        ("powerint2", "[5...8]", 5, 7),
        ("int", "[-9007199254740992...9007199254740992]", -(2**53), 2**53 - 1),
    ],
)
def test_number_ranges(kind: str, written: str, low: float, high: float, tmp_path: Path) -> None:
    (parameter,) = _text(f"a:\n  type: {kind}\n  range: {written}", tmp_path).parameters
    assert (parameter.low, parameter.high) == (low, high)


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("{a, b}", ("a", "b")),
        ("[a, b]", ("a", "b")),
        ("{0, 1, 2}", (0, 1, 2)),
        ("{1, 1.25, 1e-3}", (1, 1.25, 0.001)),
        ('{"linear", "1"}', ("linear", "1")),
        ("[true, null, x]", (True, None, "x")),
        ("\n    - a\n    - 2", ("a", 2)),
        ("[2001-12-14]", ("2001-12-14",)),
        ("[<<, =]", ("<<", "=")),
    ],
)
def test_choice_ranges(written: str, values: tuple[Any, ...], tmp_path: Path) -> None:
    (parameter,) = _text(f"a:\n  type: choice\n  range: {written}", tmp_path).parameters
    assert parameter.values == values
    assert [type(value) for value in parameter.values] == [type(value) for value in values]


def test_submodule_by_value_of_every_discrete_type() -> None:
    child = {"x": {"type": "float", "range": [0, 1]}}
    for kind, bounds, key in (("int", [4, 8], 5), ("powerint2", [4, 8], 32), ("choice", [1, 2], 2)):
        space = load_space({"a": {"type": kind, "range": bounds, "submodule": {key: child}}})
        names = [tuple(sub.choices.values()) for sub in space.subspaces() if sub.n_parameters == 2]
        assert names == [(key,)]


def test_forest_is_the_product(nested_space: Space) -> None:
    tree = nested_space.to_dict()["top"]
    renamed = {"top": {"type": "choice", "range": [0, 1], "submodule": {0: {}}}}
    two = load_space({"top": tree, "second": renamed["top"]})
    assert two.n_subspaces == 4 * 2


def test_aliases_are_allowed(tmp_path: Path) -> None:
    text = "a: &unit {type: float, range: [0...1]}\nb: *unit"
    assert _text(text, tmp_path).names == ("a", "b")


def test_name_may_be_a_keyword_of_the_grammar() -> None:
    leaf = {"type": "float", "range": [0, 1]}
    space = load_space({"type": leaf, "range": leaf, "default": leaf})
    assert space.names == ("type", "range", "default")
    inner = {"a": {"type": "choice", "range": ["u"], "submodule": {"u": {"type": leaf}}}}
    assert load_space(inner).names == ("a", "type")


def test_one_name_may_be_a_list_in_one_branch_and_a_scalar_in_another() -> None:
    leaf = {"type": "float", "range": [0, 1]}
    many = {"n": {"type": "int", "range": [1, 3], "submodule": {"x": leaf}}}
    space = load_space(
        {"a": {"type": "choice", "range": ["u", "v"], "submodule": {"u": many, "v": {"x": leaf}}}}
    )
    assert space.n_subspaces == 3
    assert isinstance(space.subspace(0).sample_config(np.random.default_rng(0))["x"], list)
    assert isinstance(space.subspace(2).sample_config(np.random.default_rng(0))["x"], float)


def test_defaults_are_used_and_checked() -> None:
    space = load_space(
        {
            "n": {
                "type": "int",
                "range": [1, 5],
                "default": 3,
                "submodule": {"x": {"type": "choice", "range": ["a", "b"], "default": "b"}},
            },
            "rate": {"type": "float", "range": [0.01, 1], "log": True},
            "size": {"type": "powerint2", "range": [5, 8], "default": 128},
        }
    )
    assert space.default_config() == {
        "n": 3,
        "x": ["b"] * 3,
        "rate": pytest.approx(0.1),
        "size": 128,
    }


def test_dict_errors_name_the_path() -> None:
    bad = {"a": {"type": "choice", "range": [1], "submodule": {1: {"b": {"type": "real"}}}}}
    with pytest.raises(SpaceError, match=r"^space\.a\.submodule\.1\.b\.type: .*'real'"):
        load_space(bad)


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"a": object()},
        {("a",): 1},
        {10**5_000: 1},
        {"a": {"type": b"int"}},
        {"a": {1: 10**5000}},
    ],
)
def test_dicts_of_foreign_things(bad: dict[Any, Any]) -> None:
    with pytest.raises(SpaceError, match=r"^space"):
        load_space(bad)


def test_dict_that_contains_itself() -> None:
    loop: dict[str, Any] = {"type": "choice"}
    loop["range"] = [loop]
    with pytest.raises(SpaceError, match="contains itself"):
        load_space({"a": loop})


def test_one_beside_true_is_refused() -> None:
    with pytest.raises(SpaceError, match="True stands twice"):
        load_space({"a": {"type": "choice", "range": [1, True]}})


def test_large_documents_are_read_or_refused_quickly() -> None:
    many = {"type": "choice", "range": list(range(9_000)), "submodule": dict.fromkeys(range(9_000))}
    space = load_space({"a": many})
    assert space.n_subspaces == 9_000
    assert space.subspace(8_999).choices == {"a": 8_999}
    with pytest.raises(SpaceError, match="10000 values"):
        load_space({"a": {"type": "choice", "range": list(range(10_001))}})
    with pytest.raises(SpaceError, match=str(MAX_NODES)):
        load_space({f"p{i}": {"type": "int", "range": [0, 2]} for i in range(MAX_NODES)})


def test_space_passes_through_and_pickles(nested_space: Space) -> None:
    assert load_space(nested_space) is nested_space
    again = pickle.loads(pickle.dumps(nested_space))
    assert again.fingerprint() == nested_space.fingerprint()
    assert "4 subspaces" in repr(again)


def test_shipped_names_with_and_without_suffix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_space_file("svm") == find_space_file("svm.yaml")
    (tmp_path / "svm").write_text("mine: {type: int, range: [0...2]}")
    assert load_space("svm").names == ("mine",)


def test_a_folder_of_a_shipped_name_is_not_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "svm").mkdir()
    (tmp_path / "search_spaces").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_space("svm").fingerprint() == load_space(find_space_file("svm")).fingerprint()
    assert find_space_file("svm").is_file()
