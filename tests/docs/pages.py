"""Pages of the documentation: their blocks, links and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
LANGUAGES = {"python", "py", "sh", "yaml", "json", "toml", "dockerfile", "text", ""}
"""What a block may be; all but the last three are run, parsed or looked up. ``py`` is a part of a
program, which is compiled only."""
_FILE = re.compile(r"# ([\w./-]+\.(?:py|yaml))\n")


@dataclass(frozen=True)
class Block:
    """A fenced block: where it is, in which language, and its text."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line}"

    @property
    def file(self) -> str | None:
        """The file that the first line names, under which other blocks of the page find it."""
        found = _FILE.match(self.text)
        return found[1] if found else None

    @property
    def needs_ray(self) -> bool:
        return bool(re.search(r"^\s*(from|import) ray\b|\.fit\(\)", self.text, re.MULTILINE))


@dataclass(frozen=True)
class Link:
    """A link or a picture."""

    page: Path
    line: int
    target: str
    is_picture: bool = False

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line} {self.target}"


def name_of(page: Path) -> str:
    """A page's path inside the project."""
    return page.relative_to(ROOT).as_posix()


def pages() -> list[Path]:
    """README and changelog, the site, and the READMEs that are pages of it."""
    found = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "search_spaces" / "README.md"]
    found += [ROOT / "nasbo" / "methods" / "README.md"]
    for folder in ("docs", "cluster", "nasbo/bench/published"):
        found += sorted((ROOT / folder).rglob("*.md"))
    return found


@lru_cache
def tokens(page: Path) -> tuple[Token, ...]:
    """A page as Markdown tokens."""
    return tuple(MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")))


def blocks(*languages: str) -> list[Block]:
    """All blocks of these languages; of every one where none is named."""
    every = (block for page in pages() for block in blocks_of(page))
    return [block for block in every if not languages or block.language in languages]


def blocks_of(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page; directives of the site (``{...}``) are none."""
    for token in tokens(page):
        if token.type == "fence" and not token.info.startswith("{"):
            assert token.map
            yield Block(page, token.map[0] + 1, token.info.strip(), token.content)


def links() -> Iterator[Link]:
    """All links and pictures."""
    for page in pages():
        for token in tokens(page):
            for inner in token.children or ():
                line = token.map[0] + 1 if token.map else 0
                if inner.type == "link_open":
                    yield Link(page, line, str(inner.attrs["href"]))
                elif inner.type == "image":
                    yield Link(page, line, str(inner.attrs["src"]), is_picture=True)


def code_spans() -> Iterator[tuple[str, str]]:
    """Code inside of sentences, with its place."""
    for page in pages():
        for token in tokens(page):
            for inner in token.children or ():
                if inner.type == "code_inline":
                    assert token.map
                    yield f"{name_of(page)}:{token.map[0] + 1}", inner.content


@lru_cache
def anchors(page: Path) -> frozenset[str]:
    """What a link to a heading of a page may say behind ``#``, by GitHub's rule."""
    found: list[str] = []
    parsed = tokens(page)
    for token, inner in pairwise(parsed):
        if token.type == "heading_open":
            words = "".join(part.content for part in inner.children or ())
            slug = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
            found.append(f"{slug}-{found.count(slug)}" if slug in found else slug)
    return frozenset(found)
