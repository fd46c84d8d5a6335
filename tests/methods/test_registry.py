"""Registry of methods: names and options."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nasbo.cli import cli
from nasbo.errors import NasboError
from nasbo.methods import METHODS, Method, make_method
from nasbo.methods.registry import check_method_options, describe_method, known_methods
from nasbo.search import Search
from nasbo.space import Space

PACKAGES = {"smac": "smac", "tpe": "optuna"}
INSTALLED = [n for n in METHODS if n not in PACKAGES or find_spec(PACKAGES[n]) is not None]


@pytest.mark.parametrize("name", INSTALLED)
def test_every_method_can_be_built(name: str, nested_space: Space) -> None:
    method = make_method(name, nested_space, seed=3)
    assert isinstance(method, Method)
    assert (method.space, method.seed) == (nested_space, 3)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_what_it_is(name: str) -> None:
    entry, options = describe_method(name)
    assert entry == METHODS[name]
    assert entry.summary
    assert entry.source
    assert not {"self", "space", "seed"} & options.keys()


def test_options_come_from_the_signature() -> None:
    _, options = describe_method("addtree")
    assert options == {"acquisition": "ei", "kernel": "se"}
    assert describe_method("random")[1] == {}


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("guess", {}, "unknown method 'guess'; known: addtree, arc, attnbo, .*, tree"),
        ("random", {"speed": 1}, "'random' has no option 'speed'; known: none"),
        ("attnbo", {"speed": 1}, "'attnbo' has no option 'speed'; known: .*preset"),
        ("random", {"seed": -1}, "seed must be an integer >= 0, got -1"),
        ("random", {"seed": True}, "seed must be an integer >= 0, got True"),
        ("random", {"seed": 1.5}, "seed must be an integer >= 0, got 1.5"),
        (":", {}, "must be module:Class, got ':'"),
        (".a:b", {}, "must be module:Class, got '.a:b'"),
        ("os:getcwd", {}, r"no method 'os:getcwd': it must take \(space, seed\)"),
        ("os:sep", {}, r"no method 'os:sep': it must take \(space, seed\)"),
        ("builtins:print", {}, "'builtins:print' must make a Method, got None"),
    ],
)
def test_bad_requests(name: str, settings: dict[str, Any], words: str, flat_space: Space) -> None:
    with pytest.raises(NasboError, match=words):
        make_method(name, flat_space, **settings)


@pytest.mark.parametrize("option", ["seed", "space", "name"])
def test_names_of_arguments_are_no_options(option: str) -> None:
    with pytest.raises(NasboError, match=f"'random' has no option '{option}'; known: none"):
        check_method_options("random", {option: 3})


def test_method_of_ones_own_by_its_path(flat_space: Space) -> None:
    method = make_method("nasbo.methods.random:RandomSearch", flat_space, 1)
    assert type(method).__name__ == "RandomSearch"
    for path in ("nowhere.at_all:Thing", "nasbo.methods.random:Thing"):
        with pytest.raises(NasboError, match=f"no method '{path}'"):
            make_method(path, flat_space)


PLUGIN = """
from nasbo.methods.random import RandomSearch

class Lucky(RandomSearch):
    \"\"\"Random search of another package.

    More words.
    \"\"\"

    def __init__(self, space, seed=0, *, number=7):
        super().__init__(space, seed)
        self.number = number
"""
ENTRY_POINTS = """
[nasbo.methods]
lucky = lucky_plugin:Lucky
random = lucky_plugin:Lucky
broken = lucky_plugin:Nothing
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with a method, as installed by pip."""
    (tmp_path / "lucky_plugin.py").write_text(PLUGIN, encoding="utf-8")
    info = tmp_path / "lucky_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lucky-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("lucky_plugin", None)


@pytest.mark.usefixtures("plugin")
def test_method_of_another_package_is_found(flat_space: Space) -> None:
    method = make_method("lucky", flat_space, 1, number=3)
    assert type(method).__name__ == "Lucky"
    assert vars(method)["number"] == 3
    trials = Search(flat_space, method="lucky", seed=2).ask(4)
    assert all(flat_space.canonical(trial.config) == trial.config for trial in trials)
    entry, options = describe_method("lucky")
    assert entry.summary == "Random search of another package."
    assert entry.source == "package lucky-plugin"
    assert options == {"number": 7}
    with pytest.raises(NasboError, match="'lucky' has no option 'speed'; known: number"):
        make_method("lucky", flat_space, speed=1)
    with pytest.raises(NasboError, match=r"unknown method 'guess'; known: .*, lucky, "):
        make_method("guess", flat_space)


@pytest.mark.usefixtures("plugin")
def test_names_of_nasbo_cannot_be_taken(
    flat_space: Space, caplog: pytest.LogCaptureFixture
) -> None:
    assert known_methods()["random"] == METHODS["random"]
    assert "method 'random' of 'lucky_plugin:Lucky' is left out" in caplog.text
    assert type(make_method("random", flat_space)).__name__ == "RandomSearch"


@pytest.mark.usefixtures("plugin")
def test_broken_method_of_another_package_is_listed_as_such(flat_space: Space) -> None:
    entry, options = describe_method("broken")
    assert entry.summary.startswith("cannot be loaded: no method 'lucky_plugin:Nothing'")
    assert options == {}
    with pytest.raises(NasboError, match="no method 'lucky_plugin:Nothing'"):
        make_method("broken", flat_space)


@pytest.mark.usefixtures("plugin")
def test_command_line_lists_names_sources_and_options() -> None:
    told = CliRunner().invoke(cli, ["methods"]).stdout
    for name, entry in METHODS.items():
        assert f"{name:<13} {entry.summary}\n" in told
        assert f"source: {entry.source}\n" in told
    assert "options: acquisition=ei, kernel=se\n" in told
    assert "lucky         Random search of another package.\n" in told
    assert "source: package lucky-plugin\n" in told
    assert "options: number=7\n" in told
