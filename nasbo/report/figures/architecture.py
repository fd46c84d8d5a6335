"""Figure of the best networks as rows of blocks, from the trainer's summary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from nasbo.history import Trial
from nasbo.report.axes import is_finite, number_text
from nasbo.report.drawing import Box, Drawing, Line, Shape, Words, shorten_text
from nasbo.report.study import Figure, NoDataError, Study, key_of, summarise, value_of

N_NETWORKS = 3
WIDTH, BAND = 1180.0, 206.0
_TINTS = ("c1", "c3", "c5", "c6", "c2", "c8", "c7", "c4")
"""Colours that remain distinguishable when pale."""
LOWEST, HIGHEST = 100.0, 148.0


def draw_architectures(study: Study, n_networks: int = N_NETWORKS) -> Figure:
    """The best networks, one row each, with blocks from left to right."""
    drawn = _best(study, n_networks)
    drawing = Drawing(WIDTH, BAND * len(drawn))
    colors = _operation_colors(_rows_together(study, n_networks))
    for index, (trial, summary) in enumerate(drawn):
        drawing.extend(_network(study, trial, summary, BAND * index, colors))
    caption = (
        "From the picture to the classes. In a box: operation, kernel and stride, channels in → "
        "out, how many layers, and what else it has; the arrow carries the side of the map. "
        "Taller boxes have more channels."
    )
    title = "Best architectures" if n_networks > 1 else "Best architecture"
    return Figure("architectures", title, caption, drawing, is_wide=True)


def _best(study: Study, n: int) -> list[tuple[Trial, dict[str, Any]]]:
    """The best trials with the trainer's summaries of them."""
    study.require_values()
    if study.trainer is None:
        raise NoDataError(study.trainer_problem)
    if study.trainer.summary is None:
        raise NoDataError(f"the trainer {study.trainer.path} offers no summary of a config")
    found = [(trial, summarise(study, trial)) for trial in study.ranked[:n]]
    found = [(trial, summary) for trial, summary in found if block_rows(summary)]
    if not found:
        raise NoDataError("the trainer's summary has no rows to draw")
    return found


def _rows_together(study: Study, n: int) -> list[Mapping[str, Any]]:
    """Blocks of all drawn networks of all sweeps, so that colours have the
    same meaning everywhere.
    """
    rows: list[Mapping[str, Any]] = []
    for one in study.together:
        with suppress(NoDataError):
            rows += [row for _, summary in _best(one, n) for row in block_rows(summary)]
    return rows


def block_rows(summary: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rows = summary.get("rows", [])
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def _operation_colors(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    names = dict.fromkeys(_operation(row) for row in rows)
    inner = sorted(name for name in names if name not in ("stem", "head"))
    return dict(zip(inner, (*_TINTS, *["muted"] * len(inner)), strict=False))


def _operation(row: Mapping[str, Any]) -> str:
    return str(row.get("op") or row.get("name") or row.get("type") or "block")


def _network(
    study: Study, trial: Trial, summary: Mapping[str, Any], top: float, colors: dict[str, str]
) -> list[Shape]:
    rows = block_rows(summary)
    known = [name for name in ("params", "flops") if is_finite(summary.get(name))]
    sizes = [_size(trial, summary, name) for name in known]
    value = number_text(value_of(trial), 5)
    subspace = shorten_text(study.history.subspace(trial).id, 50)
    title = f"trial {trial.id}: {study.metric} {value}"
    shapes: list[Shape] = [
        Words(10, top + 22, title, 14, "ink", is_bold=True),
        Words(10 + 8.2 * len(title) + 16, top + 22, ", ".join([subspace, *sizes])),
    ]
    step = (WIDTH - 20) / len(rows)
    for number, row in enumerate(rows):
        left = 10 + number * step
        color = colors.get(_operation(row), "muted")
        shapes += _block(row, left, step, top + 118, color, key_of(trial))
        if number + 1 < len(rows):
            shapes += _arrow(row, left + step - 3, step, top + 118)
    return shapes


def _size(trial: Trial, summary: Mapping[str, Any], name: str) -> str:
    """A size of the network, with the size as trained if a recipe changed width or picture size."""
    words = f"{number_text(summary[name])} {name}"
    trained = trial.metrics.get(f"trial_{name}", trial.metrics.get(name))
    if not is_finite(trained) or number_text(trained) == number_text(summary[name]):
        return words
    return f"{words} ({number_text(trained)} as trained)"


def _block(
    row: Mapping[str, Any], left: float, step: float, middle: float, color: str, key: str
) -> list[Shape]:
    width = step - _gap(step)
    height = _height(row)
    y = middle - height / 2
    words = "\n".join(f"{name}: {_text(value)}" for name, value in row.items())
    shapes: list[Shape] = [
        Box(left, y, width, height, color, 0.22, 6, words, key),
        Box(left, y, width, 4, color, 1.0, 2),
    ]
    lines = block_lines(row)
    first = middle - 7.25 * len(lines) + 12
    for number, text in enumerate(lines):
        level = first + 14.5 * number
        color, is_bold = ("ink", True) if number == 0 else ("text", False)
        room = int(width / 5.6)
        fitted = shorten_text(text, max(room, 4))
        shapes.append(Words(left + width / 2, level, fitted, 11, color, "middle", is_bold=is_bold))
    return shapes


def _gap(step: float) -> float:
    return min(30.0, step * 0.3)


def _arrow(row: Mapping[str, Any], tip: float, step: float, middle: float) -> list[Shape]:
    """Arrow from a block to the next, labelled with the feature map's size."""
    start = tip - _gap(step) + 5
    head = [(tip - 4, middle - 3), (tip, middle), (tip - 4, middle + 3)]
    shapes: list[Shape] = [Line([(start, middle), (tip, middle)], "muted", 1.2)]
    shapes.append(Line(head, "muted", 1.2))
    if "out_size" in row:
        center = (start + tip) / 2
        shapes.append(Words(center, middle - 7, _text(row["out_size"]), 10, "muted", "middle"))
    return shapes


def _height(row: Mapping[str, Any]) -> float:
    channels = row.get("out_channels")
    if not isinstance(channels, int | float) or channels <= 0:
        return LOWEST
    share = min(math.log2(max(channels, 8)) - 3, 6.0) / 6.0
    return LOWEST + share * (HIGHEST - LOWEST)


def block_lines(row: Mapping[str, Any]) -> list[str]:
    """Text inside a block: known columns in short form, others with their names."""
    lines = [_operation(row)]
    if "kernel" in row and _operation(row) != "head":
        stride = f" /{row['stride']}" if row.get("stride", 1) != 1 else ""
        lines.append(f"{row['kernel']}×{row['kernel']}{stride}")
    if "out_channels" in row:
        inputs = f"{_text(row['in_channels'])} → " if "in_channels" in row else ""
        lines.append(f"{inputs}{_text(row['out_channels'])}")
    if row.get("layers", 1) != 1:
        lines.append(f"{row['layers']} layers")
    if row.get("expansion", 1) != 1:
        lines.append(f"expand {row['expansion']}")
    if row.get("se_ratio"):
        lines.append(f"SE 1/{row['se_ratio']}")
    if row.get("skip", "none") != "none":
        lines.append(f"skip {row['skip']}")
    if len(lines) == 1:
        lines += [f"{name} {_text(value)}" for name, value in list(row.items())[:5]]
    return lines


def _text(value: object) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return number_text(float(value)) if is_number else str(value)  # type: ignore[arg-type]
