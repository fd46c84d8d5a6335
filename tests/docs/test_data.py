"""YAML, JSON and TOML blocks of the documentation; no block is in another language."""

from __future__ import annotations

import json
import tomllib

import pytest
import yaml

from nasbo import load_space
from nasbo.space.plain_yaml import read_yaml
from nasbo.sweeps.settings import SETTINGS, make_sweep
from tests.docs.conftest import Prepare
from tests.docs.pages import LANGUAGES, Block, blocks


def is_sweep(block: Block) -> bool:
    return "space" in yaml.safe_load(block.text)


SWEEPS = [block for block in blocks("yaml") if is_sweep(block)]
SPACES = [block for block in blocks("yaml") if not is_sweep(block)]


def test_every_block_has_a_known_language() -> None:
    unknown = [
        f"{block} is {block.language!r}" for block in blocks() if block.language not in LANGUAGES
    ]
    assert not unknown


@pytest.mark.parametrize("block", blocks("py"), ids=str)
def test_a_part_of_a_program_compiles(block: Block) -> None:
    compile(block.text, str(block), "exec")


@pytest.mark.parametrize("block", SPACES, ids=str)
def test_a_space_has_a_default_config(block: Block) -> None:
    space = load_space(read_yaml(block.text))
    assert space.subspace_of(space.default_config()).index < space.n_subspaces


@pytest.mark.parametrize("block", SWEEPS, ids=str)
def test_a_sweep_file_has_known_settings(block: Block, prepare: Prepare) -> None:
    prepare(block.page)
    settings = yaml.safe_load(block.text)
    assert set(settings) <= set(SETTINGS)
    sweep = make_sweep(settings)
    assert load_space(sweep.space).n_subspaces >= 1


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_json_is_lines_of_json(block: Block) -> None:
    assert all(isinstance(json.loads(line), dict) for line in block.text.splitlines())


@pytest.mark.parametrize("block", blocks("toml"), ids=str)
def test_toml_names_entry_points_that_exist(block: Block, prepare: Prepare) -> None:
    folder = prepare(block.page)
    points = tomllib.loads(block.text)["project"]["entry-points"]["nasbo.methods"]
    for path in points.values():
        module, name = path.split(":")
        assert f"class {name}(" in (folder / f"{module}.py").read_text()
