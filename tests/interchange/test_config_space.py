"""Spaces of ConfigSpace that nasbo did not write."""

from __future__ import annotations

import io

import ConfigSpace
import pytest

from nasbo.errors import SpaceError
from nasbo.interchange.from_config_space import from_config_space, read_config_space
from nasbo.interchange.grow import Grown
from nasbo.interchange.listing import listing_of
from tests.interchange.there_and_back import check_same_configs


def _read(found: ConfigSpace.ConfigurationSpace) -> Grown:
    text = io.StringIO()
    found.to_json(text)
    return read_config_space(text.getvalue(), "own.json")


def _check_samples(found: ConfigSpace.ConfigurationSpace, grown: Grown, n: int = 200) -> None:
    """What ConfigSpace draws are configs, with the same parameters."""
    found.seed(0)
    for one in found.sample_configuration(n):
        config = grown.translation.config(dict(one))
        assert {*grown.translation.values(config)} == {*dict(one)}


def test_all_conditions_become_branches() -> None:
    found = ConfigSpace.ConfigurationSpace()
    kind = ConfigSpace.Categorical("kind", ["a", "b", "c"])
    size = ConfigSpace.Integer("size", (1, 5))
    dose = ConfigSpace.OrdinalHyperparameter("dose", ["low", "middle", "high"])
    leaves = [ConfigSpace.Float(name, (0, 1)) for name in "pqrst"]
    p, q, r, s, t = leaves
    found.add(kind, size, dose, *leaves)
    found.add(
        ConfigSpace.NotEqualsCondition(p, kind, "a"),
        ConfigSpace.GreaterThanCondition(q, size, 2),
        ConfigSpace.LessThanCondition(r, dose, "high"),
        ConfigSpace.AndConjunction(
            ConfigSpace.EqualsCondition(s, kind, "b"), ConfigSpace.InCondition(s, size, [1, 4])
        ),
        ConfigSpace.OrConjunction(
            ConfigSpace.EqualsCondition(t, kind, "c"),
            ConfigSpace.LessThanCondition(t, dose, "middle"),
        ),
    )
    grown = _read(found)
    assert grown.losses == ()
    _check_samples(found, grown)
    check_same_configs(grown.translation, listing_of(grown.space)[1])
    space = grown.space
    assert space.default_config()["kind"] == "a"


def test_what_a_space_cannot_say_is_named() -> None:
    found = ConfigSpace.ConfigurationSpace()
    a = ConfigSpace.Float("a", (0, 1), distribution=ConfigSpace.Normal(0.5, 0.1))
    b = ConfigSpace.Categorical("b", ["x", "y"], weights=[1, 3])
    c = ConfigSpace.Float("c", (0, 1))
    d = ConfigSpace.Float("d", (0, 1))
    e = ConfigSpace.Integer("e", (1, 9), distribution=ConfigSpace.Beta(2, 3))
    found.add(a, b, c, d, e)
    found.add(ConfigSpace.GreaterThanCondition(d, c, 0.5))
    found.add(
        ConfigSpace.ForbiddenAndConjunction(
            ConfigSpace.ForbiddenEqualsClause(b, "x"), ConfigSpace.ForbiddenEqualsClause(e, 3)
        )
    )
    grown = _read(found)
    told = "\n".join(grown.losses)
    assert "'a' is NormalFloat: it is uniform over its range" in told
    assert "'b' has weights: its values are equally likely" in told
    assert "'d' exists under some values of 'c' only, a number in [0, 1]" in told
    assert "'e' is BetaInteger: it is uniform over its range" in told
    assert "forbidden: (Forbidden: b == 'x' && Forbidden: e == 3)" in told
    assert len(grown.losses) == 5
    assert grown.space.subspace(0).n_parameters == 5


def test_names_defaults_and_constants() -> None:
    found = ConfigSpace.ConfigurationSpace()
    found.add(
        ConfigSpace.Float("svm.C", (0.01, 10), log=True, default=1.0),
        ConfigSpace.Float("svm:C", (0, 1)),
        ConfigSpace.Integer("n", (1, 9), default=5),
        ConfigSpace.Categorical("k", ["a", "b"], default="b"),
        ConfigSpace.Constant("version", 3),
    )
    grown = _read(found)
    tree = grown.space.to_dict()
    assert grown.notes == ("'svm.C' is \"svm:C'\"",)
    assert tree["svm:C'"] == {"type": "float", "range": [0.01, 10], "log": True, "default": 1.0}
    assert tree["n"] == {"type": "int", "range": [1, 10]}, "5 is what ConfigSpace chooses itself"
    assert tree["k"]["default"] == "b"
    assert tree["version"]["range"] == [3]
    _check_samples(found, grown, 10)


def test_numbered_names_under_a_count_are_a_list() -> None:
    found = ConfigSpace.ConfigurationSpace()
    count = ConfigSpace.Integer("n_layers", (1, 3))
    units = [ConfigSpace.Integer(f"units_{at}", (8, 64)) for at in range(3)]
    found.add(count, *units)
    found.add(*(ConfigSpace.GreaterThanCondition(units[at], count, at) for at in (1, 2)))
    grown = _read(found)
    assert grown.notes == ("'units_0' and its like are the list 'units'",)
    assert grown.space.n_subspaces == 3
    assert grown.translation.config({"n_layers": 2, "units_0": 9, "units_1": 8}) == {
        "n_layers": 2,
        "units": [9, 8],
    }
    _check_samples(found, grown)


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"hyperparameters": [{"type": "no"}]}'])
def test_other_files_are_refused(text: str) -> None:
    with pytest.raises(SpaceError, match=r"own.json: is no space of ConfigSpace"):
        read_config_space(text, "own.json")


def test_conditions_on_many_parameters_have_an_end() -> None:
    found = ConfigSpace.ConfigurationSpace()
    parents = [ConfigSpace.Categorical(f"p{chr(97 + at)}", list(range(9))) for at in range(9)]
    leaf = ConfigSpace.Float("leaf", (0, 1))
    found.add(*parents, leaf)
    found.add(
        ConfigSpace.OrConjunction(
            *(
                ConfigSpace.AndConjunction(
                    ConfigSpace.EqualsCondition(leaf, one, 0),
                    ConfigSpace.EqualsCondition(leaf, other, 1),
                )
                for one, other in zip(parents, [*parents[1:], parents[0]], strict=True)
            )
        )
    )
    with pytest.raises(SpaceError, match=r"must expand to at most 50000 parameters"):
        from_config_space(found, "own")
