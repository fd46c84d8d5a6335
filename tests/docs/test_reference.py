"""The reference has every public name, setting, event and figure."""

from __future__ import annotations

import importlib
import pkgutil
import re
from dataclasses import fields

import pytest

import nasbo
from nasbo.history import events
from nasbo.methods.registry import describe_method
from nasbo.report.figures import FIGURES, FRONT_FIGURES, RUNG_FIGURES
from nasbo.sweeps.settings import SETTINGS
from tests.docs.pages import ROOT

PACKAGES = [
    package
    for package in (
        "nasbo",
        *(one.name for one in pkgutil.walk_packages(nasbo.__path__, "nasbo.") if one.ispkg),
        "trainers",
    )
    if hasattr(importlib.import_module(package), "__all__")
]
REFERENCE = "\n".join(
    page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "api").glob("*.md"))
)
ENTRIES = set(re.findall(r"^\.\. (?:auto\w+|py:data):: ([\w.]+)$", REFERENCE, re.MULTILINE)) | set(
    re.findall(r"^\| `([\w.]+)` \| \{py:obj\}`[\w.]+` \|$", REFERENCE, re.MULTILINE)
)


def public(package: str) -> list[str]:
    return [f"{package}.{name}" for name in importlib.import_module(package).__all__]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_an_entry(package: str) -> None:
    missing = set(public(package)) - ENTRIES
    missing -= {name for name in missing if f"[{name}]({name}.md)" in REFERENCE}
    assert not missing


def test_entries_are_of_things_that_exist() -> None:
    for entry in ENTRIES:
        module, _, name = entry.rpartition(".")
        assert hasattr(importlib.import_module(module), name) or importlib.import_module(entry)


def test_aliases_lead_to_entries_of_the_same_thing() -> None:
    aliases = re.findall(r"^\| `([\w.]+)` \| \{py:obj\}`([\w.]+)` \|$", REFERENCE, re.MULTILINE)
    assert ("nasbo.search.Search", "nasbo.Search") in aliases
    for alias, entry in aliases:
        assert entry in ENTRIES
        one, other = (
            getattr(importlib.import_module(path.rpartition(".")[0]), path.rpartition(".")[2])
            for path in (alias, entry)
        )
        assert one is other


def table_of(page: str, heading: str) -> str:
    """The part of a page under a heading."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return text.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def test_every_setting_is_in_the_format_of_sweep_files() -> None:
    rows = re.findall(r"^\| (`.*?) \|", table_of("formats.md", "The sweep file"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named == set(SETTINGS)


def test_every_event_is_in_the_format_of_the_journal() -> None:
    text = table_of("formats.md", "The journal")
    kinds = [one for one in vars(events).values() if isinstance(one, type)]
    kinds = [one for one in kinds if issubclass(one, events.Event) and one is not events.Event]
    for event in kinds:
        assert f"`{event.kind}`" in text
        for item in fields(event):
            assert f"`{item.name}`" in text, f"{event.kind} has {item.name}"


def test_every_figure_is_in_the_gallery() -> None:
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    headed = {
        name for line in re.findall(r"^## (.*)$", text, re.MULTILINE) for name in line.split()
    }
    listed = set(re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE))
    assert set(FIGURES) | set(RUNG_FIGURES) | set(FRONT_FIGURES) <= headed | listed


@pytest.mark.parametrize("method", nasbo.METHODS)
def test_a_method_is_on_its_page_with_its_paper_and_options(method: str) -> None:
    text = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| `{method}` \|.*$", text, re.MULTILINE)
    entry, options = describe_method(method)
    years = re.findall(r"\b(?:19|20)\d\d\b", entry.source)
    assert years
    assert all(year in row for year in years)
    place = text if method == "attnbo" else row
    assert all(re.search(rf"`{option}[=`]", place) for option in options), options
