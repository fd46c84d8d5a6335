"""Picture of MnasNet's space: the seven blocks, and what is chosen in each of them.

`python docs/drawings/mnasnet.py` writes it again; widths, strides and choices come from the code.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from nasbo.space import Parameter, load_space
from trainers.architecture import STEM_CHANNELS
from trainers.mnasnet import LARGE_STRIDES, STRIDES, WIDTHS, rows

PICTURE = Path(__file__).parents[1] / "pictures" / "mnasnet.svg"
WIDTH, HEIGHT = 960, 404
STYLE = """.h { font-weight: 700 } .s { font-size: 12px; fill: #555 } .m { font-family: monospace }
.box { fill: #fff; stroke: #999 } .block { fill: #dfecfb; stroke: #2a78d6 }
.child { fill: #fdf0d0; stroke: #c98500 } .line { stroke: #777; fill: none; stroke-width: 1.3 }"""
WORDS = {
    "operation": "convolution, depthwise separable, inverted residual",
    "expansion": "only of an inverted residual",
    "kernel": "side of the kernel",
    "se_ratio": "squeeze-and-excitation",
    "skip": "added to the output",
    "width": "times the channels above",
    "layers": "equal layers, the first has the stride",
}


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """A line of text."""
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str = "box") -> str:
    """A box with round corners."""
    size = f'width="{width}" height="{height}"'
    return f'<rect x="{x}" y="{y}" {size} rx="5" class="{kind}"/>'


def chain() -> list[str]:
    """Stem, blocks and head from left to right, with the sides of the maps at both sizes."""
    config = load_space("mnasnet").default_config()
    sides = [[row.image_size for row in rows(config, image_size=size)] for size in (32, 224)]
    drawn = [text(24, 34, "Network", "h"), text(104, 34, "stem, seven blocks, classes", "s")]
    drawn += [box(24, 52, 76, 96), text(62, 78, "stem", "h", "middle")]
    drawn += [text(62, 100, str(STEM_CHANNELS), "", "middle")]
    for at, channels in enumerate(WIDTHS):
        left, halves = 114 + 106 * at, (STRIDES[at], LARGE_STRIDES[at])
        middle = left + 47
        drawn += [
            f'<path class="line" d="M{left - 14} 100H{left}"/>',
            box(left, 52, 94, 96, "block"),
            text(middle, 78, f"block {at + 1}", "h", "middle"),
            text(middle, 100, f"{channels}", "", "middle"),
            text(middle, 118, f"stride {halves[0]}" + " / 2" * (halves[0] != halves[1]), "s",
                 "middle"),
            text(middle, 136, f"map {sides[0][at]} / {sides[1][at]}", "s", "middle"),
        ]  # fmt: skip
    drawn += ['<path class="line" d="M844 100H858"/>', box(858, 52, 78, 96)]
    drawn += [text(897, 78, "mean", "h", "middle"), text(897, 100, "linear", "h", "middle")]
    legend = "channels, stride and side of the map that comes in: on pictures of 32 / 224 pixels"
    return [*drawn, text(24, 168, legend, "s")]


def choices() -> list[str]:
    """What is chosen in each block, children indented."""
    (blocks, *_) = load_space("mnasnet").parameters
    drawn = [text(24, 206, "Each block", "h"), text(116, 206, "chooses for itself", "s")]
    lines: list[tuple[Parameter, bool]] = []
    for parameter in blocks.repeated:
        lines += [(parameter, False), *((child, True) for child in parameter.children)]
    for at, (parameter, is_child) in enumerate(lines):
        y, left = 218 + 25 * at, 56 if is_child else 24
        values = ", ".join(str(parameter.value_at(level)) for level in range(parameter.n_levels))
        if is_child:
            drawn.append(f'<path class="line" d="M38 {y - 3}V{y + 11}H{left}"/>')
        drawn += [
            box(left, y, 132, 22, "child" if is_child else "block"),
            text(left + 10, y + 16, parameter.name, "m"),
            text(210, y + 16, values, "m"),
            text(470, y + 16, WORDS[parameter.name], "s"),
        ]
    return drawn


def picture() -> str:
    """The whole picture as SVG."""
    label = "Seven blocks between a stem and the classes, and the choices in each block"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="system-ui, \'DejaVu Sans\', sans-serif" font-size="14" '
        f'role="img" aria-label="{label}">'
    )
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="#fbfbfa"/>'
    body = [f"<style>{STYLE}</style>", ground, *chain(), *choices()]
    return "\n".join([head, *body, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
