"""Figure of attention maps, labelled by units or tokens."""

from __future__ import annotations

from collections.abc import Sequence

from nasbo.methods.explanation import MAX_MAPS, AttentionMap
from nasbo.report.drawing import Drawing, Heat, Shape, Words, shorten_start, shorten_text
from nasbo.report.study import Figure, NoDataError, Study, last_text

PANEL, MAP, LARGEST_CELL = 590.0, 450.0, 40.0
_MEANINGS = {
    "units": "Row i shows where unit i (the parameters of a branch, a block of a network) looks "
    "for results that tell something about its own: all attention on itself means that nothing is "
    "shared, an even row that the units are alike. It begins as a guess (nearer units share more) "
    "and is learned from this sweep's results: with few of them it is still near the guess.",
    "trained encoder": "Row i shows what token i attends to in the encoder's first block, mean of "
    "its heads, for the best config of each of the best subspaces. The encoder was trained on this "
    "sweep's results for this picture.",
}


def draw_attention(study: Study) -> Figure:
    """Attention maps, two per row."""
    maps = study.explanation.maps[:MAX_MAPS]
    if not maps:
        raise NoDataError(study.explanation.reason)
    drawing = draw_maps(study, maps)
    return Figure("attention", "Attention", _caption(maps), drawing, is_wide=len(maps) > 1)


def draw_maps(study: Study, maps: Sequence[AttentionMap]) -> Drawing:
    """The maps as one drawing."""
    drawing = Drawing(PANEL * min(len(maps), 2), 0)
    for first in range(0, len(maps), 2):
        pair = maps[first : first + 2]
        for index, one in enumerate(pair):
            drawing.extend(_panel(study, one, PANEL * index, drawing.height))
        drawing.height += 170 + max(_cell(one) * len(one.labels) for one in pair)
    return drawing


def _cell(one: AttentionMap) -> float:
    return min(MAP / len(one.labels), LARGEST_CELL)


def _panel(study: Study, one: AttentionMap, left: float, top: float) -> list[Shape]:
    n = len(one.labels)
    cell = _cell(one)
    size = max(5.5, min(11.0, cell * 0.86))
    x, y = left + 118, top + 36
    title = shorten_text(one.title, 60)
    if one.trial is not None:
        value = last_text(one.trial)
        title = f"{shorten_start(one.title, 40)}: trial {one.trial.id}, {study.metric} {value}"
    shapes: list[Shape] = [
        Words(left + 8, top + 18, title, 13, "ink", is_bold=True),
        Heat(x, y, cell, one.weights, one.labels),
    ]
    for number, label in enumerate(one.labels):
        level = (number + 0.5) * cell + size * 0.35
        words = shorten_text(label, 20)
        shapes.append(Words(x - 5, y + level, words, size, "text", "end"))
        shapes.append(Words(x + level - size * 0.7, y + n * cell + 7, words, size, "text", turn=90))
    return shapes


def _caption(maps: Sequence[AttentionMap]) -> str:
    kinds = dict.fromkeys(one.kind for one in maps)
    colours = "A stronger colour is more attention, full colour the largest of a map."
    return " ".join([*(_MEANINGS[kind] for kind in kinds), colours])
