"""Spaces to ConfigSpace and Optuna and back: no config is lost, and none is added."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ConfigSpace
import numpy as np
import optuna
import pytest

from nasbo.errors import ConfigError
from nasbo.interchange.config_space import config_space_text, to_config_space
from nasbo.interchange.convert import nasbo_text
from nasbo.interchange.from_config_space import read_config_space
from nasbo.interchange.from_optuna import trace
from nasbo.interchange.listing import listing_of
from nasbo.interchange.to_optuna import suggest_code
from nasbo.methods.smac import Smac
from nasbo.space import Space, load_space
from nasbo.space.flat import from_flat
from nasbo.space.load import SHIPPED
from nasbo.space.plain_yaml import read_yaml
from nasbo.testing import SPACES
from tests.interchange.there_and_back import check_same_configs

OTHER_RANGES = {
    "kind": {
        "type": "choice",
        "range": ["a", "b"],
        "submodule": {
            "a": {"size": {"type": "int", "range": [1, 4]}},
            "b": {"size": {"type": "int", "range": [1, 9], "default": 2}},
        },
    }
}
SHARED_PARENT = {
    "top": {
        "type": "choice",
        "range": ["left", "right"],
        "submodule": {
            "left": {
                "turn": {
                    "type": "int",
                    "range": [0, 2],
                    "submodule": {0: {"x": {"type": "float", "range": [0, 1]}}},
                }
            },
            "right": {
                "turn": {
                    "type": "int",
                    "range": [0, 2],
                    "submodule": {1: {"y": {"type": "float", "range": [0, 1]}}},
                }
            },
        },
    }
}
ONE_VALUE = {
    "only": {
        "type": "int",
        "range": [3, 4],
        "submodule": {3: {"x": {"type": "float", "range": [0, 1], "default": 0.25}}},
    },
    "word": {"type": "choice", "range": [None]},
}
EVERY: dict[str, Any] = {path.stem: path.stem for path in sorted(SHIPPED.glob("*.yaml"))}
EVERY |= SPACES | {"ranges": OTHER_RANGES, "shared": SHARED_PARENT, "one_value": ONE_VALUE}


@pytest.fixture(params=list(EVERY))
def space(request: pytest.FixtureRequest) -> Space:
    return load_space(EVERY[request.param])


def _suggest(space: Space) -> Any:
    found: dict[str, Any] = {}
    exec(suggest_code(space)[0], found)
    return found["suggest"]


def test_shipped_spaces_are_among_them() -> None:
    assert {"cash", "nas_cifar10", "nas_cifar10_conditional", "svm"} <= set(EVERY)


def test_config_space_comes_back(space: Space) -> None:
    back = read_config_space(config_space_text(space))
    assert back.losses == ()
    check_same_configs(listing_of(space)[1], back.translation)
    assert {*listing_of(space)[1].names.values()} == {*back.translation.names.values()}


@pytest.mark.parametrize("name", [n for n in EVERY if n not in ("ranges", "one_value")])
def test_config_space_keeps_order_kinds_and_defaults(name: str) -> None:
    space = load_space(EVERY[name])
    back = read_config_space(config_space_text(space)).space
    assert json.dumps(back.to_dict()) == json.dumps(space.to_dict())


def test_its_own_configs_are_configs(space: Space) -> None:
    found, translation = to_config_space(space)
    found.seed(0)
    for one in found.sample_configuration(40):
        config = translation.config(dict(one))
        assert space.canonical(config) == config


def test_configs_are_its_own(space: Space) -> None:
    found, translation = to_config_space(space)
    rng = np.random.default_rng(0)
    for _ in range(40):
        values = translation.values(space.sample(rng))
        legal = ConfigSpace.Configuration(found, values=values)  # checks what is active
        assert {*legal} == {*values}


def test_smac_searches_the_same_configs(space: Space) -> None:
    known = Smac(space)._config_space(0)
    ours, translation = to_config_space(space)
    for one in known.sample_configuration(20):
        values = translation.values(from_flat(space, dict(one)))
        assert {*ConfigSpace.Configuration(ours, values=values)} == {*values}
        assert len(values) == len(dict(one))


def test_optuna_comes_back_but_for_what_is_named(space: Space) -> None:
    _, losses = suggest_code(space)
    back = trace(_suggest(space))
    assert back.losses == ()
    check_same_configs(listing_of(space)[1], back.translation)
    ordered = {
        n.parameter.name for n in space.nodes if n.parameter.kind in ("powerint2", "ordinal")
    }
    defaults = {n.parameter.name for n in space.nodes if n.parameter.has_default}
    assert {loss.split("'")[1] for loss in losses} == ordered | defaults
    kinds = {node.parameter.kind for node in back.space.nodes}
    assert kinds <= {"choice", "int", "float"}


def test_real_studies_suggest_configs(space: Space) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    suggest, translation = _suggest(space), listing_of(space)[1]
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(30):
        trial = study.ask()
        config = suggest(trial)
        assert space.canonical(config) == config
        assert translation.values(config) == trial.params


def test_space_files_say_the_same(space: Space) -> None:
    assert load_space(read_yaml(nasbo_text(space))).to_dict() == space.to_dict()


def test_lists_of_hundreds_come_back_from_optuna() -> None:
    tree = {"n": {"type": "int", "range": [2, 21], "submodule": {"x": EVERY["flat"]["x"]}}}
    space = load_space(tree)
    back = trace(_suggest(space))
    assert back.space.to_dict() == space.to_dict()


def test_values_that_are_no_config_are_refused() -> None:
    translation = listing_of(load_space("svm"))[1]
    config = load_space("svm").sample(np.random.default_rng(0))
    values = translation.values(config)
    with pytest.raises(ConfigError, match=r"'C' is missing: it must be a number"):
        translation.config({name: one for name, one in values.items() if name != "C"})
    with pytest.raises(ConfigError, match=r"'other' must be absent"):
        translation.config(values | {"other": 1})
    with pytest.raises(ConfigError, match=r"'C' must be a number in"):
        translation.config(values | {"C": 2000.0})


def test_text_names_no_folder(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("x: {type: float, range: [0, 1]}\n")
    space = load_space(path)
    for text in (config_space_text(space), suggest_code(space)[0]):
        assert "own" in text
        assert str(tmp_path) not in text
