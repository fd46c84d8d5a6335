"""Figure of slices: values of each parameter against results, with the model's mean and band."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nasbo.history import Trial
from nasbo.methods.explanation import Slice
from nasbo.report.axes import Frame, Scale, number_text
from nasbo.report.drawing import Area, Dot, Drawing, Line, Shape, Words, shorten_text
from nasbo.report.study import Figure, Study, key_of, value_of
from nasbo.space import Coordinate

WIDTH, HEIGHT = 380.0, 220.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 16.0, 36.0, 34.0
MAX_PANELS = 12
MAX_DOTS = 300
MAX_TICKS = 6
SPREAD = 0.08
"""Dots of one choice lie within so much of the distance to the next one."""

Placed = tuple[Trial, Coordinate]


def draw_slices(study: Study) -> Figure:
    """A panel per parameter, those that matter most first.

    Raises:
        NoDataError: fewer than two trials have ended with a value.
    """
    study.require_values(2)
    trials = study.some(MAX_DOTS)
    placed: dict[str, list[Placed]] = {}
    for trial in trials:
        for one in study.history.subspace(trial).coordinates:
            placed.setdefault(one.label, []).append((trial, one))
    slices = {one.coordinate.label: one for one in study.explanation.slices}
    labels = _labels(study, placed)
    panels = {
        label: _panel(study, label, placed[label], slices.get(label))
        for label in labels[:MAX_PANELS]
    }
    caption = _caption(study, len(trials), bool(slices))
    if n_others := len(labels) - len(panels):
        caption += f" Left out: {n_others:,} of the parameters."
    return Figure("slices", "Parameters and results", caption, is_wide=True, panels=panels)


def _labels(study: Study, placed: dict[str, list[Placed]]) -> list[str]:
    """Coordinates that vary, those that matter most first, as far as anybody can tell."""
    found = study.importance
    order = list(found.shares) if found and not found.doubt else []
    labels = [label for label in [*order, *placed] if label in placed]
    return [
        label
        for label in dict.fromkeys(labels)
        if len({repr(one.value_in(trial.config)) for trial, one in placed[label]}) > 1
    ]


def _caption(study: Study, n_drawn: int, has_model: bool) -> str:
    n = len(study.valued)
    caption = f"{study.metric} against each parameter; a dot is a trial, coloured by subspace."
    caption += study.in_full
    if n_drawn < n:
        caption += f" Drawn are {n_drawn:,} of {n:,}, the best third of them as the best."
    if not has_model:
        why = study.explanation.reason or f"the method {study.sweep.method} has none to show"
        return f"{caption} There is no line of a model: {why}."
    return (
        f"{caption} The line is the model's mean of the noise-free {study.metric} and the band one "
        "standard deviation, along this parameter alone: all others are as in the best trial that "
        f"has it (the circle). The model was fitted on {study.explanation.n_results:,} results."
    )


def _panel(study: Study, label: str, placed: Sequence[Placed], told: Slice | None) -> Drawing:
    coordinate = told.coordinate if told else placed[0][1]
    same = [(trial, one) for trial, one in placed if one.parameter == coordinate.parameter]
    x = Scale(-0.03, 1.03, LEFT, WIDTH - RIGHT)
    y = Scale(*study.value_limits, HEIGHT - BOTTOM, TOP)
    drawing = Drawing(WIDTH, HEIGHT)
    drawing.add(Words(LEFT, 16, shorten_text(label, 40), 12.5, "ink", is_bold=True))
    drawing.extend(Frame(x, y).shapes(has_x_ticks=False))
    drawing.extend(_ticks(coordinate, x))
    if told:
        drawing.extend(_band(told, x, y))
    for trial, one in reversed(same):
        place = x(one.parameter.to_unit(one.value_in(trial.config)) + _apart(trial, one))
        is_base = told is not None and trial.id == told.trial.id
        color, key = study.color(trial), key_of(trial)
        if is_base:
            drawing.add(Dot(place, y(value_of(trial)), 6.5, "ink", 1.0, key=key))
        drawing.add(Dot(place, y(value_of(trial)), 3.2, color, 0.75, key=key))
    if told:
        drawing.extend(_mean(told, x, y))
    if len(same) < len(placed):
        n = len(placed) - len(same)
        words = f"{n:,} in other ranges"
        drawing.add(Words(WIDTH - RIGHT, 16, words, 11, "muted", "end"))
    return drawing


def _units(told: Slice) -> list[float]:
    return [told.coordinate.parameter.to_unit(value) for value in told.values]


def _is_line(told: Slice) -> bool:
    """Whether neighbouring values are alike; choices stand for themselves."""
    return told.coordinate.parameter.is_ordered and len(told.values) > 1


def _band(told: Slice, x: Scale, y: Scale) -> list[Shape]:
    units = _units(told)
    lows = [(x(u), y(low)) for u, (_, low, _) in zip(units, told.predictions, strict=True)]
    highs = [(x(u), y(high)) for u, (_, _, high) in zip(units, told.predictions, strict=True)]
    if _is_line(told):
        return [Area([*lows, *reversed(highs)], "c1", 0.18)]
    return [
        Area([(a - 12, b), (a + 12, b), (a + 12, d), (a - 12, d)], "c1", 0.18)
        for (a, b), (_, d) in zip(lows, highs, strict=True)
    ]


def _mean(told: Slice, x: Scale, y: Scale) -> list[Shape]:
    means = [(x(u), y(m)) for u, (m, _, _) in zip(_units(told), told.predictions, strict=True)]
    if _is_line(told):
        return [Line(means, "ink", 1.8)]
    return [Line([(left - 12, level), (left + 12, level)], "ink", 2.0) for left, level in means]


def _apart(trial: Trial, one: Coordinate) -> float:
    """Keeps dots of one level apart, the same way each time."""
    n = one.parameter.n_levels
    return (trial.id * 37 % 13 - 6) / 6 * SPREAD / max(n - 1, 2) if 0 < n <= 25 else 0.0


def _ticks(coordinate: Coordinate, x: Scale) -> list[Shape]:
    parameter, level = coordinate.parameter, HEIGHT - BOTTOM
    n = parameter.n_levels
    if 0 < n <= MAX_TICKS or (n and not parameter.is_ordered):
        step = math.ceil(n / MAX_TICKS)
        units = [parameter.to_unit(parameter.value_at(at)) for at in range(0, n, step)]
    else:
        units = [0.0, 0.25, 0.5, 0.75, 1.0]
    shapes: list[Shape] = []
    size = max(4, 60 // len(units))
    for unit in units:
        value = parameter.from_unit(unit)
        text = number_text(value) if isinstance(value, float) else shorten_text(str(value), size)
        at = x(parameter.to_unit(value))
        middle = min(at, WIDTH - 3.5 * len(text))  # the last one must not be cut off
        shapes.append(Line([(at, level), (at, level + 4)], "axis"))
        shapes.append(Words(middle, level + 18, text, 11, "muted", "middle"))
    return shapes
