"""Names and options to methods."""

from __future__ import annotations

from typing import Any

import pytest

from nasbo.errors import NasboError
from nasbo.methods import METHODS, Method, make_method
from nasbo.space import Space


@pytest.mark.parametrize("name", METHODS)
def test_every_method_can_be_built(name: str, nested_space: Space) -> None:
    method = make_method(name, nested_space, seed=3)
    assert isinstance(method, Method)
    assert (method.space, method.seed) == (nested_space, 3)
    assert METHODS[name].summary


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("guess", {}, "unknown method 'guess'; known: attnbo, random"),
        ("random", {"speed": 1}, "'random' has no option 'speed'; known: none"),
        ("attnbo", {"speed": 1}, "'attnbo' has no option 'speed'; known: .*preset"),
        ("random", {"seed": -1}, "seed must be an integer >= 0, got -1"),
        ("random", {"seed": True}, "seed must be an integer >= 0, got True"),
        ("random", {"seed": 1.5}, "seed must be an integer >= 0, got 1.5"),
    ],
)
def test_bad_requests(name: str, settings: dict[str, Any], words: str, flat_space: Space) -> None:
    with pytest.raises(NasboError, match=words):
        make_method(name, flat_space, **settings)


def test_method_of_ones_own_by_its_path(flat_space: Space) -> None:
    method = make_method("nasbo.methods.random:RandomSearch", flat_space, 1)
    assert type(method).__name__ == "RandomSearch"
    for path in ("nowhere.at_all:Thing", "nasbo.methods.random:Thing"):
        with pytest.raises(NasboError, match=f"no method '{path}'"):
            make_method(path, flat_space)
