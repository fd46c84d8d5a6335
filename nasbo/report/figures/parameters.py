"""Figures of the parameters: importance, and parallel coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from nasbo.history import Trial
from nasbo.report.axes import Scale, number_text, value_limits
from nasbo.report.drawing import (
    SERIES,
    Box,
    Drawing,
    Line,
    Shape,
    Words,
    shorten_start,
    shorten_text,
)
from nasbo.report.importance import Importance, compared_step, name_of
from nasbo.report.study import Figure, NoDataError, Study, key_of, value_of
from nasbo.space import Coordinate

WIDTH = 560.0
MAX_BARS = 16
MAX_AXES = 9
MAX_LINES = 600
_LEAST = 0.01
"""Parameters whose upper confidence bound is below this share are not drawn."""


def draw_importance(study: Study) -> Figure:
    """Shares of the explained variance by name; list elements are stacked in one bar.

    Raises:
        NoDataError: the results do not show which parameters matter.
    """
    found = _importance(study)
    names = _shown_names(found)
    drawing = Drawing(WIDTH, 28.0 + 28 * len(names))
    sure = [one.importance for one in study.together if one.importance and not one.importance.doubt]
    highs = (one.intervals[name][1] for one in sure for name in _shown_names(one))
    x = Scale(0, max(highs) or 1, 150, WIDTH - 116)
    for index, name in enumerate(names):
        level = 12.0 + 28 * index
        drawing.add(Words(x.start - 10, level + 14, shorten_text(name, 24), anchor="end"))
        drawing.extend(_parts(found, name, x, level))
        drawing.extend(_whisker(found, name, x, level + 9.5))
    caption = _importance_caption(found, len(names)) + _compared(study)
    return Figure("importance", "Which parameters matter", caption, drawing)


def _compared(study: Study) -> str:
    """A sentence about the step whose values are compared; empty without rungs."""
    rungs, step = study.history.rungs, compared_step(study.history)
    if rungs is None or step is None:
        return ""
    if step == rungs.full:
        return study.in_full
    return f" The results are those at step {step} of {rungs.full}, where enough trials were seen."


def _importance(study: Study) -> Importance:
    if study.importance is None:
        raise NoDataError("fewer than 8 results, or all of them alike")
    if study.importance.doubt:
        raise NoDataError(study.importance.doubt)
    return study.importance


def _shown_names(found: Importance) -> list[str]:
    """Parameters that may have a relevant share, largest first."""
    return [name for name in found.by_name() if found.intervals[name][1] >= _LEAST][:MAX_BARS]


def _parts(found: Importance, name: str, x: Scale, level: float) -> list[Shape]:
    shapes: list[Shape] = []
    total = 0.0
    parts = [(label, share) for label, share in found.shares.items() if name_of(label) == name]
    for label, share in sorted(parts):
        left, right = x(total), x(total + share)
        words = f"{label}: {share:.1%}"
        shapes.append(Box(left, level, right - left - 1, 19, "c1", 0.9, 1, words))
        total += share
    return shapes


def _whisker(found: Importance, name: str, x: Scale, level: float) -> list[Shape]:
    """Confidence interval of a share, as a line with ends and as text."""
    low, high = found.intervals[name]
    words = f"{found.by_name()[name]:.0%} ({100 * low:.0f}–{high:.0%})"
    ends = [Line([(x(at), level - 5), (x(at), level + 5)], "ink", 1.4) for at in (low, high)]
    told = f"{name}: {words}\nthe largest in {found.leads.get(name, 0.0):.0%} of the resamples"
    middle = Line([(x(low), level), (x(high), level)], "ink", 1.4, label=told)
    return [middle, *ends, Words(x(high) + 8, level + 4.5, words, color="ink")]


def _importance_caption(found: Importance, n_shown: int) -> str:
    name, share = next(iter(found.by_name().items()))
    low, high = found.intervals[name]
    caption = (
        "Share of the explained variance of the ranks, in an additive model of all parameters; the "
        "parts of a bar are the positions of a list, the line is the interval at 95% confidence (a "
        f"bootstrap over trials). The largest share is that of {name}: {share:.0%}, between "
        f"{low:.0%} and {high:.0%}; in {found.leads.get(name, 0.0):.0%} of the resamples it is the "
        f"largest. Fitted to {found.n_trials:,} results, the model explains "
        f"{found.explained:.0%} of the variance of left-out ones."
    )
    n_others = len(found.by_name()) - n_shown
    return caption + (f" Left out, with less: {n_others:,} of the parameters." if n_others else "")


@dataclass(frozen=True)
class Axis:
    """A vertical axis: heights by trial number, and labels."""

    title: str
    heights: dict[int, float]
    ticks: Sequence[tuple[float, str]]


def draw_parallel(study: Study) -> Figure:
    """One line per trial over the most important parameters; the last axis is the value."""
    study.require_values(2)
    trials = study.some(MAX_LINES)
    axes = _axes(study, trials)
    width, top, bottom = 1180.0, 40.0, 400.0
    drawing = Drawing(width, bottom + 30)
    positions = [60 + n * (width - 140) / (len(axes) - 1) for n in range(len(axes))]
    for rank, trial in reversed(list(enumerate(trials))):
        drawing.add(_line(study, trial, rank / len(trials), axes, positions))
    for position, axis in zip(positions, axes, strict=True):
        drawing.extend(_draw_axis(axis, position, top, bottom))
    which = "the parameters that explain most" if _order(study) else "the first parameters"
    caption = (
        f"{len(trials)} trials, the best tenth coloured; {which}, lists by their positions; below "
        f"the axes where a config does not have the parameter.{study.in_full}"
    )
    return Figure("parallel", "Parallel coordinates", caption, drawing, is_wide=True)


def _order(study: Study) -> list[str]:
    """Coordinates by importance; empty if unknown."""
    found = study.importance
    return list(found.shares) if found and not found.doubt else []


def _axes(study: Study, trials: list[Trial]) -> list[Axis]:
    coordinates: dict[str, Coordinate] = {}
    for trial in trials:
        coordinates.update((one.label, one) for one in study.history.subspace(trial).coordinates)
    labels = [label for label in (_order(study) or coordinates) if label in coordinates]
    n_groups = len({study.group(trial) for trial in trials})
    axes = [_subspace_axis(study, trials)] if n_groups > 1 else []
    first = {study.group(trial).partition("=")[0] for trial in trials}  # has an axis already
    labels = [label for label in labels if label not in first][:MAX_AXES]
    axes += [_parameter_axis(study, coordinates[label], trials) for label in labels]
    return [*axes, _value_axis(study, trials)]


def _subspace_axis(study: Study, trials: list[Trial]) -> Axis:
    ordered = sorted(trials, key=lambda trial: trial.subspace)
    present = list(dict.fromkeys(study.group(trial) for trial in ordered))
    heights = {name: 1 - at / max(len(present) - 1, 1) for at, name in enumerate(present)}
    step = math.ceil(len(present) / 10)
    ticks = [(height, shorten_start(name, 16)) for name, height in heights.items()]
    return Axis("subspace", {t.id: heights[study.group(t)] for t in trials}, ticks[::step])


def _parameter_axis(study: Study, coordinate: Coordinate, trials: list[Trial]) -> Axis:
    heights, ranges = {}, set()
    for trial in trials:
        for own in study.history.subspace(trial).coordinates:
            if own.label == coordinate.label:
                ranges.add(own.parameter.range_text())
                apart = _apart(trial) if own.parameter.n_levels else 0.0
                heights[trial.id] = own.parameter.to_unit(own.value_in(trial.config)) + apart
    if len(ranges) > 1:  # one name with different ranges in different branches
        return Axis(coordinate.label, heights, [(0.0, "lowest"), (1.0, "highest")])
    parameter = coordinate.parameter
    n = parameter.n_levels
    units = [i / (n - 1) for i in range(n)] if 1 < n <= 6 else [0.0, 0.5, 1.0]
    return Axis(
        coordinate.label, heights, [(u, _value_text(parameter.from_unit(u))) for u in units]
    )


def _apart(trial: Trial) -> float:
    """Deterministic jitter that separates lines through one level."""
    return (trial.id * 37 % 13 - 6) * 0.0025


def _value_axis(study: Study, trials: list[Trial]) -> Axis:
    low, high = value_limits([value_of(trial) for trial in trials], study.mode)
    scale = Scale(low, high, 0, 1)
    heights = {trial.id: scale(value_of(trial)) for trial in trials}
    return Axis(study.metric, heights, [(scale(t), number_text(t)) for t in scale.ticks()])


def _value_text(value: object) -> str:
    return number_text(value) if isinstance(value, float) else shorten_text(str(value), 12)


def _line(
    study: Study, trial: Trial, rank: float, axes: list[Axis], positions: list[float]
) -> Line:
    points = [
        (position, 416.0 if trial.id not in axis.heights else 400 - 360 * axis.heights[trial.id])
        for position, axis in zip(positions, axes, strict=True)
    ]
    color, width, opacity = ("muted", 1.0, 0.3) if rank >= 0.1 else (SERIES[0], 1.8, 0.9)
    return Line(points, color, width, opacity, label=study.words(trial), key=key_of(trial))


def _draw_axis(axis: Axis, x: float, top: float, bottom: float) -> list[Shape]:
    shapes: list[Shape] = [
        Line([(x, top), (x, bottom)], "axis", 1.2),
        Words(x, top - 18, shorten_text(axis.title, 17), 11, "ink", "middle", is_bold=True),
    ]
    for height, words in axis.ticks:
        level = bottom - height * (bottom - top)
        shapes.append(Line([(x - 3, level), (x + 3, level)], "axis"))
        shapes.append(Words(x + 6, level + 4, words, 10, "ink", has_halo=True))
    return shapes
