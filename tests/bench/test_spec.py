"""Specs of methods as text: names, options, batches."""

from __future__ import annotations

import pytest

from nasbo.bench.peers import PEERS
from nasbo.bench.spec import MethodSpec, parse_method, parse_methods
from nasbo.errors import NasboError
from nasbo.methods.tpe import Tpe
from nasbo.space import load_space
from nasbo.testing import SPACES


def test_options_and_batch_are_read_and_written_back() -> None:
    spec = parse_method(" attnbo[attention=off, preset=default]@4 ")
    assert spec == MethodSpec("attnbo", (("attention", "off"), ("preset", "default")), "4")
    assert spec.label == "attnbo[attention=off,preset=default]@4"
    assert spec.values == {"attention": False, "preset": "default"}
    assert parse_method(spec.label) == spec


def test_commas_inside_of_brackets_do_not_separate_methods() -> None:
    found = parse_methods("attnbo[attention=off,preset=default],gp , nasbo.methods.gp:FlatGP@2")
    labels = ["attnbo[attention=off,preset=default]", "gp", "nasbo.methods.gp:FlatGP@2"]
    assert [spec.label for spec in found] == labels


def test_batch_may_follow_the_space() -> None:
    space = load_space(SPACES["nested"])
    assert parse_method("gp@subspaces").batch_size(space, 1) == 4
    assert parse_method("gp@3").batch_size(space, 1) == 3
    assert parse_method("gp").batch_size(space, 2) == 2


def test_short_names_of_peers_bring_their_options() -> None:
    spec = parse_method("tpe-group")
    assert (spec.method, spec.values) == ("tpe", {"multivariate": True})
    method = spec.make(load_space(SPACES["flat"]))
    assert isinstance(method, Tpe)
    assert method.multivariate
    assert parse_method("tpe-group[multivariate=false]").values == {"multivariate": False}
    assert set(PEERS) >= {"hierarchical", "hyperopt", "tpe-group"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gp[", r"must read name\[option=value"),
        ("gp[step]", "must read name=value, got 'step'"),
        ("gp@0", "number >= 1 or 'subspaces'"),
        ("gp@many", "number >= 1 or 'subspaces'"),
        ("gp,gp", "named once, got 'gp' twice"),
        ("a b", "must read name"),
    ],
)
def test_faults_are_named(text: str, message: str) -> None:
    with pytest.raises(NasboError, match=message):
        parse_methods(text)


def test_unknown_methods_and_options_list_the_known_ones() -> None:
    space = load_space(SPACES["flat"])
    with pytest.raises(NasboError, match="unknown method 'nope'; known: addtree"):
        parse_method("nope").make(space)
    with pytest.raises(NasboError, match="no option 'speed'; known: multivariate"):
        parse_method("tpe[speed=1]").make(space)
