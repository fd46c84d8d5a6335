"""Figure of all learning curves, with the rungs where there are some."""

from __future__ import annotations

import math

from nasbo.history import Trial
from nasbo.report.axes import Frame, Scale, beyond_text, log_limits, value_limits
from nasbo.report.curves import Curve
from nasbo.report.drawing import Dot, Drawing, Line, Shape, Words, legend, legend_height
from nasbo.report.figures.settings import promotions_text
from nasbo.report.study import Figure, NoDataError, Study, key_of
from nasbo.sweeps.rungs import promoted_at

WIDTH, HEIGHT = 1180.0, 400.0
LEFT, RIGHT = 70.0, 24.0
MAX_CURVES = 1_500
LOG_FROM = 5.0
"""Values to be minimised that span more than this factor are on a logarithmic scale."""


def draw_learning_curves(study: Study) -> Figure:
    """A line per trial over the steps of its training, the rungs as vertical lines.

    Raises:
        NoDataError: no trial has told values at several steps.
    """
    drawn = _drawn(study)
    if study.history.rungs is None and all(len(curve) < 2 for curve in drawn.values()):
        raise NoDataError("no trial has told values at several steps so far")
    if not drawn:
        raise NoDataError("no trial has told a value so far")
    entries = study.group_legend()
    top = 44.0 + legend_height(entries, WIDTH - LEFT - RIGHT)
    x = _steps(study, drawn)
    values = [value for curve in drawn.values() for _, value in curve if math.isfinite(value)]
    ends = value_limits(values, study.mode)
    is_log = study.mode == "min" and 0 < LOG_FROM * min(values) < ends[1]
    ends = log_limits((min(values), ends[1])) if is_log else ends
    y = Scale(*ends, top + HEIGHT - 100, top, is_log)
    drawing = Drawing(WIDTH, top + HEIGHT - 50)
    frame = Frame(x, y, "step", study.metric)
    drawing.extend(frame.shapes(has_x_ticks=study.history.rungs is None))
    drawing.extend(_rung_lines(study, x, y))
    for trial in _in_order(study, drawn):
        drawing.extend(_curve(study, trial, drawn[trial.id], x, y))
    drawing.extend(legend(entries, LEFT, 16, WIDTH - LEFT - RIGHT))
    caption = _caption(study, len(drawn)) + beyond_text(values, ends) + study.grouped
    caption += f" {study.metric} is on a logarithmic scale, too." if is_log else ""
    title = "Learning curves and rungs" if study.history.rungs else "Learning curves"
    return Figure("learning-curves", title, caption, drawing, is_wide=True)


def _caption(study: Study, n_drawn: int) -> str:
    caption = "Each line is a training; pointed at, it tells its trial and its value there."
    if study.history.rungs:
        caption = (
            "Each line is a training, over steps on a logarithmic scale. The vertical lines are "
            "the rungs, at which trials pause; a dot is a promotion, from which the trial went on; "
            "a thick line is a full training."
        )
    n = len(study.curves)
    return caption + (f" Drawn are {n_drawn:,} of {n:,} curves." if n_drawn < n else "")


def _steps(study: Study, drawn: dict[int, Curve]) -> Scale:
    """The axis of steps: logarithmic with rungs, which grow by a factor."""
    rungs = study.history.rungs
    if rungs is not None:
        return Scale(1, rungs.full, LEFT, WIDTH - RIGHT, is_log=True)
    steps = [curve[at][0] for curve in drawn.values() for at in (0, -1)]
    return Scale(min(steps), max(steps), LEFT, WIDTH - RIGHT)


def _drawn(study: Study) -> dict[int, Curve]:
    """The curve of each trial that is drawn, by its number."""
    numbers = [n for n in study.curves if n in study.drawn]
    if len(numbers) > MAX_CURVES:
        best = {trial.id for trial in study.ranked[: MAX_CURVES // 3]}
        rest = [n for n in numbers if n not in best]
        numbers = sorted([*best, *rest[:: math.ceil(len(rest) / (MAX_CURVES - len(best)))]])
    return {n: study.curves[n] for n in numbers if n in study.curves}


def _in_order(study: Study, drawn: dict[int, Curve]) -> list[Trial]:
    """The longest curves last, above the others."""
    trials = [trial for trial in study.history.trials if trial.id in drawn]
    return sorted(trials, key=lambda trial: (drawn[trial.id][-1][0], trial.id))


def _rung_lines(study: Study, x: Scale, y: Scale) -> list[Shape]:
    """A vertical line at each rung, dashed where it was dropped, with its step below."""
    shapes: list[Shape] = []
    rungs = study.history.rungs
    if rungs is None:
        return shapes
    for step in dict.fromkeys((1, *rungs.steps)):
        is_dropped = step in rungs.dropped
        if step in rungs.lower:
            points = [(x(step), y.end), (x(step), y.start)]
            shapes.append(Line(points, "muted", 1.2, is_dashed=is_dropped))
        words = f"{step} (dropped)" if is_dropped else str(step)
        shapes.append(Line([(x(step), y.start), (x(step), y.start + 4)], "axis"))
        shapes.append(Words(x(step), y.start + 18, words, 11, "muted", "middle"))
    return shapes


def _curve(study: Study, trial: Trial, curve: Curve, x: Scale, y: Scale) -> list[Shape]:
    """The line of a training, and a dot at each promotion."""
    color, key, words = study.color(trial), key_of(trial), _words(study, trial)
    width, opacity = (2.0, 0.95) if trial.state == "finished" else (1.2, 0.5)
    if study.history.rungs is None:
        width, opacity = 1.4, max(0.12, min(0.75, 80 / len(study.curves)))
    points = [(x(step), y(value)) for step, value in curve]
    shapes: list[Shape] = [Line(points, color, width, opacity, label=words, key=key)]
    for step in promoted_at(trial):
        pause = trial.first.pauses[step]
        shapes.append(Dot(x(pause.step), y(pause.value), 4.0, color, 0.9, words, key))
    return shapes


def _words(study: Study, trial: Trial) -> str:
    """A trial for the pointer, with why it went on."""
    words = study.words(trial)
    return f"{words}\nwent on: {promotions_text(trial)}" if trial.first.reasons else words
