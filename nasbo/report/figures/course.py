"""Figures of a search's course: best so far, subspaces, and use of the budget."""

from __future__ import annotations

import math
from collections import Counter
from statistics import median

from nasbo.history import Trial
from nasbo.report.axes import (
    Frame,
    Scale,
    beyond_text,
    limits,
    step_points,
    value_limits,
)
from nasbo.report.drawing import (
    Box,
    Dot,
    Drawing,
    Line,
    Shape,
    Words,
    legend,
    legend_height,
    shorten_start,
)
from nasbo.report.study import SOURCE_COLORS, Figure, Study, key_of, value_of, values_text
from nasbo.sweeps.spending import best_course, n_trained

WIDTH, HEIGHT = 560.0, 340.0
MAX_ROWS = 14
MAX_NAME = 32
MAX_BARS = 60


def draw_best_so_far(study: Study) -> Figure:
    """Each trial's value and the best so far, over the ended trials or the used budget."""
    study.require_values()
    curve = best_course(study.history)
    x = Scale(0, _last_place(study, curve), 64, WIDTH - 16)
    ends = value_limits(study.values, study.mode)
    y = Scale(*ends, HEIGHT - 56, 56)
    drawing = Drawing(WIDTH, HEIGHT)
    drawing.extend(_design_band(study, x, y))
    drawing.extend(Frame(x, y, study.budget_title, study.metric).shapes())
    drawing.add(Line(step_points(curve, x, y), "ink", 2.0))
    drawing.extend(_trial_dots(study, x, y))
    present = {trial.source for trial in study.history.trials}
    entries = [("best so far", "ink")]
    entries += [(name, color) for name, color in SOURCE_COLORS.items() if name in present]
    drawing.extend(legend(entries, 64, 16, WIDTH - 80))
    caption = _best_caption(study) + beyond_text(study.values, ends) + study.thinned
    return Figure("best-so-far", "Best so far", caption + study.in_full, drawing)


def _last_place(study: Study, curve: list[tuple[float, float]]) -> float:
    """Right end of the budget's axis, with a margin."""
    return len(study.ended) + 1 if study.history.rungs is None else 1.05 * curve[-1][0]


def _trial_dots(study: Study, x: Scale, y: Scale) -> list[Shape]:
    return [
        Dot(
            x(place),
            y(value_of(trial)),
            3.5,
            SOURCE_COLORS[trial.source],
            0.85,
            study.words(trial),
            key_of(trial),
        )
        for place, trial in study.course
        if trial.value is not None and trial.id in study.drawn
    ]


def _design_band(study: Study, x: Scale, y: Scale) -> list[Shape]:
    """Background of the initial design, up to its last trial; none with
    rungs, where others mix in.
    """
    numbers = [number for number, t in enumerate(study.ended, start=1) if t.source == "design"]
    if not numbers or study.history.rungs is not None:
        return []
    right = x(numbers[-1] + 0.5)
    return [Box(x(0.5), y.end, right - x(0.5), y.start - y.end, "grid", 0.55)]


def _best_caption(study: Study) -> str:
    best = study.ranked[0]
    subspace = study.history.subspace(best).id
    told = f"Best: trial {best.id} with {study.metric} {values_text(best)} in {subspace}"
    return f"{told}." if study.history.rungs else f"{told}; the grey ground is the initial design."


def draw_subspaces(study: Study) -> Figure:
    """Values by subspace, one row each, the best subspace on top."""
    study.require_values()
    groups: dict[str, list[Trial]] = {}
    for trial in study.ranked:
        groups.setdefault(study.group(trial, MAX_ROWS), []).append(trial)
    rows = list(groups.values())[:MAX_ROWS]
    height = 76.0 + 34 * len(rows)
    longest = max(len(study.group(group[0], MAX_ROWS)) for group in rows)
    left_end = 24 + 7.0 * min(longest, MAX_NAME)
    ends = value_limits(study.values, study.mode)
    x = Scale(*ends, left_end, WIDTH - 56)
    y = Scale(0, len(rows), height - 52, 20)
    drawing = Drawing(WIDTH, height)
    drawing.extend(Frame(x, y, study.metric).shapes(has_y_ticks=False))
    for index, group in enumerate(rows):
        drawing.extend(_subspace_row(study, group, x, 37.0 + 34 * index))
    left = f" The best {len(rows)} of {len(groups):,} groups." if len(groups) > MAX_ROWS else ""
    grouped = study.grouped if study.history.space.n_subspaces > MAX_ROWS else ""
    caption = f"Each dot is a trial, the line the median, the number how many.{grouped}{left}"
    caption += beyond_text(study.values, ends)
    caption += study.thinned + study.in_full
    return Figure("subspaces", f"{study.metric} by subspace", caption, drawing)


def _subspace_row(study: Study, group: list[Trial], x: Scale, level: float) -> list[Shape]:
    name = shorten_start(study.group(group[0], MAX_ROWS), MAX_NAME)
    shapes: list[Shape] = [
        Line([(x.start, level), (x.end, level)], "grid"),
        Words(x.start - 10, level + 4, name, anchor="end"),
        Words(x.end + 10, level + 4, f"{len(group):,}", color="muted"),
    ]
    color = study.color(group[0])
    for trial in reversed(group):
        if trial.id in study.drawn:
            spread = (trial.id * 37 % 13 - 6) * 1.2  # deterministic jitter
            point = x(value_of(trial)), level + spread
            shapes.append(Dot(*point, 4.0, color, 0.8, study.words(trial), key_of(trial)))
    middle = x(median(value_of(trial) for trial in group))
    shapes.append(Line([(middle, level - 12), (middle, level + 12)], "ink", 2.0))
    return shapes


def draw_budget(study: Study) -> Figure:
    """Trials per round by subspace; with rungs the steps that they were trained."""
    suggested = study.history.suggested
    study.require_values()
    n_rounds = max(trial.round for trial in suggested) + 1 if suggested else 1
    each = math.ceil(n_rounds / MAX_BARS)
    counts, totals = Counter[tuple[int, str]](), Counter[int]()
    for trial in suggested:
        counts[trial.round // each, study.color(trial)] += _n_steps(study, trial)
        totals[trial.round // each] += _n_steps(study, trial)
    n_bars = math.ceil(n_rounds / each)
    entries = study.group_legend()
    top = 30.0 + legend_height(entries, WIDTH - 68)
    x = Scale(0, n_bars, 52, WIDTH - 16)
    y = Scale(0, limits([0, *totals.values()])[1], HEIGHT - 56, top)
    drawing = Drawing(WIDTH, HEIGHT)
    title = "round" if each == 1 else f"rounds, {each} to a bar"
    unit = "trials" if study.history.rungs is None else "steps"
    drawing.extend(Frame(x, y, title, unit).shapes(has_x_ticks=False))
    drawing.extend(_bar_numbers(n_bars, each, x, HEIGHT - 38))
    for bar in range(n_bars):
        drawing.extend(_bar(bar, counts, entries, x, y, unit))
    drawing.extend(legend(entries, 52, 14, WIDTH - 68))
    caption = "Configs suggested in each round, by subspace; round 0 is the initial design."
    if study.history.rungs:
        caption = (
            "Steps that the configs of each round were trained, then or later, by subspace; round "
            "0 is the initial design."
        )
    caption += study.grouped
    return Figure("budget", "Where the budget went", caption, drawing)


def _n_steps(study: Study, trial: Trial) -> int:
    """Weight of a trial in the budget: one or, with rungs, its number of trained steps."""
    return 1 if study.history.rungs is None else n_trained([trial.first])


def _bar(
    bar: int,
    counts: Counter[tuple[int, str]],
    entries: list[tuple[str, str]],
    x: Scale,
    y: Scale,
    unit: str,
) -> list[Shape]:
    shapes: list[Shape] = []
    left, width = x(bar) + 1, x(bar + 1) - x(bar) - 2
    total = 0
    for name, color in entries:
        n = counts[bar, color]
        if n:
            top, bottom = y(total + n), y(total)
            words = f"{name}: {n} {unit}"
            shapes.append(Box(left, top, width, bottom - top - 1, color, 0.9, 1.5, words))
            total += n
    return shapes


def _bar_numbers(n_bars: int, each: int, x: Scale, level: float) -> list[Shape]:
    step = math.ceil(n_bars / 12)
    return [
        Words((x(bar) + x(bar + 1)) / 2, level, str(bar * each), 11, "muted", "middle")
        for bar in range(0, n_bars, step)
    ]
