"""Links, anchors and pictures of the documentation."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.pages import ROOT, Link, anchors, links, name_of, pages

LINKS = list(links())
INNER = [link for link in LINKS if not urlsplit(link.target).scheme]
OUTER = [link for link in LINKS if urlsplit(link.target).scheme]
MAX_PICTURE = 150_000


def test_there_are_links_of_both_kinds() -> None:
    assert len(INNER) > 100
    assert OUTER


@pytest.mark.parametrize("link", INNER, ids=str)
def test_a_link_leads_to_a_file_and_a_heading(link: Link) -> None:
    path, _, anchor = unquote(link.target).partition("#")
    target = (link.page.parent / path).resolve() if path else link.page
    assert target.exists(), f"{link}: there is no {path}"
    assert target.is_relative_to(ROOT), f"{link} leads out of the project"
    if anchor:
        assert target.suffix == ".md"
        known = anchors(target)
        assert anchor in known, f"{link}: no heading {anchor!r}; there are {sorted(known)}"


@pytest.mark.parametrize("link", OUTER, ids=str)
def test_an_address_has_the_form_of_one(link: Link) -> None:
    parts = urlsplit(link.target)
    assert parts.scheme == "https", link
    assert re.fullmatch(r"[a-z0-9.-]+\.[a-z]{2,}", parts.netloc), link


@pytest.mark.parametrize("link", [one for one in INNER if one.is_picture], ids=str)
def test_a_picture_is_small(link: Link) -> None:
    picture = link.page.parent / link.target
    assert picture.suffix in (".webp", ".svg")
    assert picture.stat().st_size < MAX_PICTURE


def test_every_picture_is_shown() -> None:
    shown = {(link.page.parent / link.target).resolve() for link in LINKS if link.is_picture}
    assert set((ROOT / "docs" / "pictures").iterdir()) <= shown


def test_every_page_of_the_site_has_one_title() -> None:
    for page in pages():
        text = page.read_text(encoding="utf-8")
        outside = re.sub(r"^\s*```.*?^\s*```", "", text, flags=re.MULTILINE | re.DOTALL)
        assert len(re.findall(r"^# ", outside, re.MULTILINE)) == 1, name_of(page)
