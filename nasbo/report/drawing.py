"""Drawings: shapes in pixels, from which SVG and PNG are made.

Figures are written once, as shapes with named colours. The page resolves the names for light and
dark mode, a PNG for paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

Anchor = Literal["start", "middle", "end"]

LEGEND_ROW = 18.0
SERIES = tuple(f"c{number}" for number in range(1, 9))
"""Categorical colours in the order of use; adjacent ones are distinguishable
for colour-blind readers."""

LIGHT = {
    "ink": "#0b0b0b",
    "text": "#52514e",
    "muted": "#898781",
    "axis": "#c3c2b7",
    "grid": "#e7e6df",
    "surface": "#fcfcfb",
    "c1": "#2a78d6",
    "c2": "#1baf7a",
    "c3": "#eda100",
    "c4": "#008300",
    "c5": "#4a3aa7",
    "c6": "#e34948",
    "c7": "#e87ba4",
    "c8": "#eb6834",
}
DARK = {
    "ink": "#ffffff",
    "text": "#c3c2b7",
    "muted": "#8f8d86",
    "axis": "#4a4945",
    "grid": "#2c2c2a",
    "surface": "#1a1a19",
    "c1": "#3987e5",
    "c2": "#199e70",
    "c3": "#c98500",
    "c4": "#00a000",
    "c5": "#9085e9",
    "c6": "#e66767",
    "c7": "#d55181",
    "c8": "#d95926",
}


@dataclass(frozen=True)
class Line:
    """A polyline; ``label`` is its tooltip, and shapes with the same ``key``
    are highlighted together.
    """

    points: Sequence[tuple[float, float]]
    color: str = "axis"
    width: float = 1.0
    opacity: float = 1.0
    is_dashed: bool = False
    label: str = ""
    key: str = ""


@dataclass(frozen=True)
class Box:
    """A filled rectangle by its upper left corner."""

    x: float
    y: float
    width: float
    height: float
    color: str = "c1"
    opacity: float = 1.0
    radius: float = 0.0
    label: str = ""
    key: str = ""


@dataclass(frozen=True)
class Area:
    """A filled polygon."""

    points: Sequence[tuple[float, float]]
    color: str = "c1"
    opacity: float = 1.0


@dataclass(frozen=True)
class Dot:
    """A filled circle with a thin outline in the background colour, which separates neighbours."""

    x: float
    y: float
    radius: float = 4.0
    color: str = "c1"
    opacity: float = 1.0
    label: str = ""
    key: str = ""


@dataclass(frozen=True)
class Words:
    """A line of text: ``y`` is the baseline, ``turn`` an angle in degrees; a
    halo covers lines behind it.
    """

    x: float
    y: float
    text: str
    size: float = 12.0
    color: str = "text"
    anchor: Anchor = "start"
    turn: float = 0.0
    is_bold: bool = False
    has_halo: bool = False


@dataclass(frozen=True)
class Heat:
    """Heat map of values >= 0, from transparent (0) to full colour (the largest)."""

    x: float
    y: float
    cell: float
    values: Sequence[Sequence[float]]
    labels: Sequence[str] = ()


Shape = Line | Box | Area | Dot | Words | Heat


@dataclass
class Drawing:
    """A picture of fixed size."""

    width: float
    height: float
    shapes: list[Shape] = field(default_factory=list)

    def add(self, *shapes: Shape) -> None:
        self.shapes += shapes

    def extend(self, shapes: Iterable[Shape]) -> None:
        self.shapes += shapes


def beside(drawings: Sequence[Drawing], n_columns: int = 3) -> Drawing:
    """Drawings of one size as one, in rows of ``n_columns``."""
    width, height = drawings[0].width, max(one.height for one in drawings)
    n_rows = -(-len(drawings) // n_columns)
    whole = Drawing(width * min(n_columns, len(drawings)), height * n_rows)
    for at, one in enumerate(drawings):
        row, column = divmod(at, n_columns)
        whole.extend(moved(shape, width * column, height * row) for shape in one.shapes)
    return whole


def moved(shape: Shape, right: float, down: float) -> Shape:
    """The shape at another place."""
    if isinstance(shape, Line | Area):
        return replace(shape, points=[(x + right, y + down) for x, y in shape.points])
    return replace(shape, x=shape.x + right, y=shape.y + down)


def legend(entries: Sequence[tuple[str, str]], x: float, y: float, room: float) -> list[Shape]:
    """Coloured squares with text, from left to right, wrapped at the available width.

    Args:
        entries: (text, colour) pairs.
        x: left end.
        y: middle of the first row.
        room: available width.
    """
    shapes: list[Shape] = []
    for (words, color), (left, row) in zip(entries, _legend_positions(entries, room), strict=True):
        level = y + LEGEND_ROW * row
        shapes.append(Box(x + left, level - 5, 10, 10, color, radius=2))
        shapes.append(Words(x + left + 15, level + 4, words))
    return shapes


def legend_height(entries: Sequence[tuple[str, str]], room: float) -> float:
    """Height of a legend."""
    rows = [row for _, row in _legend_positions(entries, room)]
    return LEGEND_ROW * (max(rows, default=0) + 1)


def _legend_positions(entries: Sequence[tuple[str, str]], room: float) -> list[tuple[float, int]]:
    """Left end and row of each entry."""
    positions: list[tuple[float, int]] = []
    left, row = 0.0, 0
    for words, _ in entries:
        width = 30 + 7.2 * len(words)
        if left > 0 and left + width > room:
            left, row = 0.0, row + 1
        positions.append((left, row))
        left += width
    return positions


def shorten_start(text: str, size: int) -> str:
    """Text shortened at its start: the end tells subspaces apart."""
    return text if len(text) <= size else "…" + text[len(text) - max(size - 1, 1) :]


def shorten_text(text: str, size: int) -> str:
    """Text shortened at its end."""
    return text if len(text) <= size else text[: max(size - 1, 1)] + "…"
