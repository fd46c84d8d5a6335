"""Guide to space files: its examples load and mean what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nasbo.errors import SpaceError
from nasbo.space import Space, load_space
from nasbo.space.load import SHIPPED

README = (SHIPPED / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.fixture
def examples(tmp_path: Path) -> list[Space]:
    spaces = []
    for number, text in enumerate(_blocks("yaml")):
        (tmp_path / f"{number}.yaml").write_text(text)
        spaces.append(load_space(tmp_path / f"{number}.yaml"))
    return spaces


def test_examples_have_the_counts_that_the_text_tells(examples: list[Space]) -> None:
    assert [space.n_subspaces for space in examples] == [1, 3, 28]
    assert examples[0].default_config()["optimizer"] == "adam"


def test_config_of_the_text_belongs_to_its_space(examples: list[Space]) -> None:
    (text,) = _blocks("json")
    assert examples[2].canonical(json.loads(text)) == json.loads(text)


def test_table_of_files_is_complete_and_right() -> None:
    rows = re.findall(r"^\| `(\w+)\.yaml` \|.*\| ([\d,]+) \|$", README, re.MULTILINE)
    assert {name for name, _ in rows} == {file.stem for file in SHIPPED.glob("*.yaml")}
    for name, count in rows:
        assert load_space(name).n_subspaces == int(count.replace(",", ""))


def test_error_of_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_space.yaml").write_text("layers:\n  type: int\n  range: [9...2]\n")
    with pytest.raises(SpaceError) as caught:
        load_space("my_space.yaml")
    assert f"nasbo: {caught.value}" in README


@pytest.mark.parametrize(
    ("kind", "written", "values"),
    [
        ("choice", "{a, b, c}", ["a", "b", "c"]),
        ("choice", "[a, b, c]", ["a", "b", "c"]),
        ("int", "[4...8]", [4, 5, 6, 7]),
        ("int", "4...8", [4, 5, 6, 7]),
        ("int", "[4, 8]", [4, 5, 6, 7]),
        ("powerint2", "[5...8]", [32, 64, 128]),
    ],
)
def test_table_of_ranges(kind: str, written: str, values: list[object], tmp_path: Path) -> None:
    assert f"`{written}`" in README
    (tmp_path / "a.yaml").write_text(f"a:\n  type: {kind}\n  range: {written}\n")
    (parameter,) = load_space(tmp_path / "a.yaml").parameters
    assert [parameter.value_at(level) for level in range(parameter.n_levels)] == values
