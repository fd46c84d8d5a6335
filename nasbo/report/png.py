"""Rendering of drawings as PNG files, with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nasbo.errors import NasboError
from nasbo.report.drawing import LIGHT, Area, Box, Dot, Drawing, Heat, Line, Shape, Words
from nasbo.report.svg import HEAT_COLOR

DPI = 200
_POINTS = 0.75
"""Points per pixel of a drawing, which has 96 pixels per inch."""


def write_png(drawing: Drawing, path: Path) -> None:
    """Write a drawing in the colours for a light background, at more than two pixels per unit.

    Raises:
        NasboError: the file cannot be written.
    """
    figure = draw(drawing)
    try:
        figure.savefig(path, dpi=DPI, facecolor="white", format="png")
    except OSError as error:
        raise NasboError(f"{path}: cannot be written: {error}") from error


def draw(drawing: Drawing) -> Any:
    """A drawing as a matplotlib figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(drawing.width / 96, drawing.height / 96))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, drawing.width)
    axes.set_ylim(drawing.height, 0)
    axes.set_axis_off()
    axes.autoscale(False)
    for order, shape in enumerate(drawing.shapes):
        _draw(axes, shape, order)
    return figure


def _draw(axes: Any, shape: Shape, order: int) -> None:
    match shape:
        case Line():
            _draw_line(axes, shape, order)
        case Box():
            _draw_box(axes, shape, order)
        case Area():
            _draw_area(axes, shape, order)
        case Dot():
            _draw_dot(axes, shape, order)
        case Words():
            _draw_words(axes, shape, order)
        case Heat():
            _draw_heat(axes, shape, order)


def _draw_line(axes: Any, line: Line, order: int) -> None:
    if not line.points:
        return
    xs, ys = zip(*line.points, strict=True)
    axes.plot(
        xs,
        ys,
        color=LIGHT[line.color],
        linewidth=line.width * _POINTS,
        alpha=line.opacity,
        linestyle="--" if line.is_dashed else "-",
        zorder=order,
    )


def _draw_area(axes: Any, area: Area, order: int) -> None:
    from matplotlib.patches import Polygon

    color, alpha = LIGHT[area.color], area.opacity
    axes.add_patch(Polygon(area.points, color=color, alpha=alpha, linewidth=0, zorder=order))


def _draw_box(axes: Any, box: Box, order: int) -> None:
    from matplotlib.patches import Rectangle

    corner, size = (box.x, box.y), (max(box.width, 0.0), max(box.height, 0.0))
    fill = LIGHT[box.color]
    axes.add_patch(Rectangle(corner, *size, color=fill, alpha=box.opacity, lw=0, zorder=order))


def _draw_dot(axes: Any, dot: Dot, order: int) -> None:
    area = math.pow(2 * dot.radius * _POINTS, 2)
    axes.scatter(
        [dot.x],
        [dot.y],
        s=area,
        color=LIGHT[dot.color],
        alpha=dot.opacity,
        edgecolors="white",
        linewidths=0.4,
        zorder=order,
    )


def _draw_words(axes: Any, words: Words, order: int) -> None:
    from matplotlib.patheffects import withStroke

    axes.text(
        words.x,
        words.y,
        words.text.replace("$", r"\$"),
        fontsize=words.size * _POINTS * 0.92,
        color=LIGHT[words.color],
        ha={"start": "left", "middle": "center", "end": "right"}[words.anchor],
        va="baseline",
        rotation=-words.turn,
        rotation_mode="anchor",
        fontweight="bold" if words.is_bold else "normal",
        zorder=order,
        path_effects=[withStroke(linewidth=2.0, foreground="white")] if words.has_halo else [],
    )


def _draw_heat(axes: Any, heat: Heat, order: int) -> None:
    n_rows, n_columns = len(heat.values), len(heat.values[0])
    right, bottom = heat.x + heat.cell * n_columns, heat.y + heat.cell * n_rows
    extent = (heat.x, right, bottom, heat.y)
    pixels = _pixels(heat.values)
    axes.imshow(pixels, extent=extent, interpolation="nearest", aspect="auto", zorder=order)


def _pixels(values: Sequence[Sequence[float]]) -> list[list[tuple[float, ...]]]:
    largest = max(max(row) for row in values) or 1.0
    color = tuple(part / 255 for part in HEAT_COLOR)
    return [[(*color, max(value, 0.0) / largest) for value in row] for row in values]
