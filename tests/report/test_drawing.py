"""Drawings as SVG and as PNG."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import matplotlib.image
import pytest

from nasbo.errors import NasboError
from nasbo.report.drawing import DARK, LIGHT, Box, Dot, Drawing, Heat, Line, Words, legend
from nasbo.report.png import write_png
from nasbo.report.svg import color_rules, heat_png, to_svg

HOSTILE = """<script>alert("1")</script> & 'x'"""


def _everything() -> Drawing:
    drawing = Drawing(200, 100)
    drawing.add(
        Line([(0, 0), (10, 5.123456)], "c2", 2.0, is_dashed=True, label=HOSTILE, key="t1"),
        Box(50, 20, 40, 30, "c6", radius=3, label="a box"),
        Dot(150, 50, 8, "c1"),
        Words(10, 90, HOSTILE, turn=90, is_bold=True, anchor="end", has_halo=True),
        Heat(100, 0, 10, [[0.0, 1.0], [0.5, 0.25]], ("a", HOSTILE)),
        Box(0, 0, -1, 5),
    )
    return drawing


def test_svg_is_well_formed_and_nothing_escapes() -> None:
    text = to_svg(_everything(), HOSTILE)
    root = ElementTree.fromstring(text)
    assert root.attrib["viewBox"] == "0 0 200 100"
    assert root.attrib["aria-label"] == HOSTILE
    tags = [child.tag for child in root]
    assert tags == ["polyline", "rect", "circle", "text", "image", "rect"]
    assert root[0].attrib["data-label"] == HOSTILE
    assert root[0].attrib["data-key"] == "t1"
    assert root[0].attrib["points"] == "0,0 10,5.12"
    assert root[3].text == HOSTILE
    assert json.loads(root[4].attrib["data-values"]) == [[0.0, 1.0], [0.5, 0.25]]
    assert json.loads(root[4].attrib["data-labels"]) == ["a", HOSTILE]
    assert root[5].attrib["width"] == "0"


def test_every_colour_has_a_light_and_a_dark_value_and_classes() -> None:
    assert LIGHT.keys() == DARK.keys()
    rules = color_rules()
    for name in LIGHT:
        assert rules.count(f"--{name}:") == 2
        assert f".f-{name}{{" in rules


def test_heat_is_a_picture_with_a_pixel_per_value() -> None:
    pixels = matplotlib.image.imread(io.BytesIO(heat_png([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]])))
    assert pixels.shape == (2, 3, 4)
    opacity = [[round(float(pixel[3]) * 4) for pixel in row] for row in pixels]
    assert opacity == [[0, 1, 2], [4, 2, 0]]
    assert matplotlib.image.imread(io.BytesIO(heat_png([[0.0]]))).shape == (1, 1, 4)


def test_png_has_the_shapes_where_they_belong(tmp_path: Path) -> None:
    write_png(_everything(), tmp_path / "all.png")
    pixels = matplotlib.image.imread(tmp_path / "all.png")
    scale = pixels.shape[1] / 200
    assert pixels.shape[0] == pytest.approx(100 * scale, abs=1)

    def color(x: float, y: float) -> str:
        red, green, blue = (
            round(float(part) * 255) for part in pixels[int(y * scale), int(x * scale)][:3]
        )
        return f"#{red:02x}{green:02x}{blue:02x}"

    assert color(70, 35) == LIGHT["c6"]
    assert color(150, 50) == LIGHT["c1"]
    assert color(115, 5) == "#2a78d6"
    assert color(105, 5) == "#ffffff"
    assert color(190, 90) == "#ffffff"


def test_png_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(NasboError, match="cannot be written"):
        write_png(_everything(), tmp_path / "missing" / "all.png")


def test_legend_stays_in_its_room() -> None:
    shapes = legend([(f"entry number {index}", "c1") for index in range(9)], 10, 20, 400)
    boxes = [shape for shape in shapes if isinstance(shape, Box)]
    assert len(boxes) == 9
    assert max(box.x for box in boxes) < 410 - 100
    assert len({box.y for box in boxes}) > 2
