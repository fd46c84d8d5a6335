"""Rendering of drawings as inline SVG."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Sequence
from html import escape

from nasbo.report.drawing import DARK, LIGHT, Area, Box, Dot, Drawing, Heat, Line, Shape, Words

HEAT_COLOR = (42, 120, 214)
"""Colour of heat map cells, whose opacity shows the value: suited to any background."""


def to_svg(drawing: Drawing, words: str) -> str:
    """The drawing as SVG; ``words`` is the text for screen readers."""
    body = "".join(_shape(shape) for shape in drawing.shapes)
    size = f"0 0 {_number(drawing.width)} {_number(drawing.height)}"
    return f'<svg viewBox="{size}" role="img" aria-label="{escape(words)}">{body}</svg>'


def color_rules() -> str:
    """CSS variables of the colours for light and dark mode, and classes that use them."""
    rules = [f":root{{{_variables(LIGHT)}}}"]
    rules.append(f"@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}")
    for name in LIGHT:
        rules.append(f".f-{name}{{fill:var(--{name})}}.s-{name}{{stroke:var(--{name})}}")
    return "".join(rules)


def _variables(colors: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colors.items())


def _shape(shape: Shape) -> str:
    match shape:
        case Line():
            return _line(shape)
        case Box():
            return _box(shape)
        case Area():
            return _area(shape)
        case Dot():
            circle = f'cx="{_number(shape.x)}" cy="{_number(shape.y)}" r="{_number(shape.radius)}"'
            return f'<circle class="dot f-{shape.color}" {circle}{_extras(shape)}/>'
        case Words():
            return _words(shape)
        case Heat():
            return _heat(shape)


def _line(line: Line) -> str:
    points = " ".join(f"{_number(x)},{_number(y)}" for x, y in line.points)
    dash = ' stroke-dasharray="4 4"' if line.is_dashed else ""
    width = f'stroke-width="{_number(line.width)}"'
    return f'<polyline class="line s-{line.color}" points="{points}" {width}{dash}{_extras(line)}/>'


def _area(area: Area) -> str:
    points = " ".join(f"{_number(x)},{_number(y)}" for x, y in area.points)
    opacity = _opacity(area.opacity)
    return f'<polygon class="f-{area.color}" points="{points}"{opacity}/>'


def _box(box: Box) -> str:
    position = f'x="{_number(box.x)}" y="{_number(box.y)}"'
    size = f'width="{_number(max(box.width, 0.0))}" height="{_number(max(box.height, 0.0))}"'
    radius = f' rx="{_number(box.radius)}"' if box.radius else ""
    return f'<rect class="f-{box.color}" {position} {size}{radius}{_extras(box)}/>'


def _words(words: Words) -> str:
    x, y = _number(words.x), _number(words.y)
    turn = f' transform="rotate({_number(words.turn)} {x} {y})"' if words.turn else ""
    anchor = f' text-anchor="{words.anchor}"' if words.anchor != "start" else ""
    weight = ' font-weight="600"' if words.is_bold else ""
    size = f' font-size="{_number(words.size)}"'
    text = escape(words.text)
    halo = " halo" if words.has_halo else ""
    look = f'class="f-{words.color}{halo}"{size}{anchor}{weight}{turn}'
    return f'<text x="{x}" y="{y}" {look}>{text}</text>'


def _heat(heat: Heat) -> str:
    n_rows, n_columns = len(heat.values), len(heat.values[0])
    width, height = _number(heat.cell * n_columns), _number(heat.cell * n_rows)
    picture = base64.b64encode(heat_png(heat.values)).decode()
    rows = [[float(f"{value:.3g}") for value in row] for row in heat.values]
    values = escape(json.dumps(rows, separators=(",", ":")))
    labels = escape(json.dumps(list(heat.labels)))
    position = f'x="{_number(heat.x)}" y="{_number(heat.y)}" width="{width}" height="{height}"'
    return (
        f'<image class="heat" {position} preserveAspectRatio="none" data-values="{values}" '
        f'data-labels="{labels}" href="data:image/png;base64,{picture}"/>'
    )


def _extras(shape: Line | Box | Dot) -> str:
    label = f' data-label="{escape(shape.label)}"' if shape.label else ""
    key = f' data-key="{escape(shape.key)}"' if shape.key else ""
    return _opacity(shape.opacity) + label + key


def _opacity(opacity: float) -> str:
    return f' opacity="{_number(opacity)}"' if opacity != 1.0 else ""


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def heat_png(values: Sequence[Sequence[float]]) -> bytes:
    """A PNG file with one pixel per value, with the value as opacity."""
    largest = max((max(row) for row in values), default=0.0) or 1.0
    color = bytes(HEAT_COLOR)
    rows = [
        b"\0" + b"".join(color + bytes([round(255 * max(v, 0.0) / largest)]) for v in row)
        for row in values
    ]
    header = struct.pack(">IIBBBBB", len(values[0]), len(values), 8, 6, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(b"".join(rows), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + checksum
