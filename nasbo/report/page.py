"""Self-contained HTML page of figures, for light and dark mode."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TypeVar

from nasbo.report.study import Figure, NoDataError, Study
from nasbo.report.svg import color_rules, to_svg

logger = logging.getLogger(__name__)
T = TypeVar("T")
MAX_WHY = 300
STYLES = ("page.css", "trials.css")
SCRIPTS = ("trials.js", "table.js", "curves.js", "drawer.js", "page.js")
"""In this order inside one function: the later ones use the earlier ones."""
POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'"
)
"""Content security policy: the page loads nothing else; ``self`` is for the served page."""


@dataclass(frozen=True)
class Page:
    """Content of a page.

    Attributes:
        title: of the page.
        subtitle: one line below it.
        tiles: (number, text) pairs at the top.
        figures: in their order.
        left_out: (figure, reason) of those without data.
        warning: caveat about all numbers of the page.
    """

    title: str
    subtitle: str
    tiles: Sequence[tuple[str, str]]
    figures: Sequence[Figure]
    left_out: Sequence[tuple[str, str]] = ()
    warning: str = ""


def collect(
    study: Study, figures: Mapping[str, Callable[[Study], Figure]]
) -> tuple[list[Figure], list[tuple[str, str]]]:
    """The figures that a study has data for, and why the others are left out."""
    results = {name: attempt(draw, study) for name, draw in figures.items()}
    drawn = [one for one in results.values() if isinstance(one, Figure)]
    left_out = [(name, one) for name, one in results.items() if isinstance(one, str)]
    return drawn, left_out


def attempt(draw: Callable[[T], Figure], what: T) -> Figure | str:
    """The figure, or the reason as text why there is none."""
    try:
        return draw(what)
    except NoDataError as error:
        return str(error)
    except Exception as error:  # an error in one figure must not affect the others
        logger.warning("a figure could not be drawn", exc_info=True)
        return f"{type(error).__name__}: {error}"[:MAX_WHY]


def to_html(page: Page, live_version: str = "") -> str:
    """The page as HTML; with ``live_version`` it polls its server for a newer version."""
    room = files("nasbo.report")
    style = color_rules() + "".join(room.joinpath(n).read_text(encoding="utf-8") for n in STYLES)
    scripts = (room.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS)
    script = f'"use strict";(() => {{\n{"".join(scripts)}}})();'
    live = f' data-version="{escape(live_version)}"' if live_version else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{escape(page.title)}</title><style>{style}</style></head><body{live}>"
        f"{_header(page)}<main>{''.join(_figure(one) for one in page.figures)}</main>"
        f'{_footer(page)}<div id="hint"></div><script>{script}</script></body></html>\n'
    )


def _header(page: Page) -> str:
    tiles = "".join(
        f'<div class="tile"><b>{escape(number)}</b><span>{escape(words)}</span></div>'
        for number, words in page.tiles
    )
    warning = f'<p class="warning">{escape(page.warning)}</p>' if page.warning else ""
    return (
        f"<header><h1>{escape(page.title)}</h1><p>{escape(page.subtitle)}</p>{warning}"
        f'<div class="tiles">{tiles}</div></header>'
    )


def _figure(figure: Figure) -> str:
    kind = ' class="wide"' if figure.is_wide else ""
    content = figure.html
    if figure.drawing is not None:
        svg = to_svg(figure.drawing, f"{figure.title}. {figure.caption}")
        content = f'<div class="scroll">{svg}</div>'
    if figure.panels:
        told = (to_svg(one, f"{figure.title}: {title}") for title, one in figure.panels.items())
        content = f'<div class="flow">{"".join(told)}</div>'
    return (
        f'<figure{kind} data-figure="{escape(figure.name)}"><h2>{escape(figure.title)}</h2>'
        f"{content}<figcaption><p>{escape(figure.caption)}</p></figcaption></figure>"
    )


def _footer(page: Page) -> str:
    lines = "".join(
        f'<p data-left-out="{escape(name)}">{escape(name)}: left out, {escape(why)}.</p>'
        for name, why in page.left_out
    )
    return f"<footer>{lines}</footer>"
