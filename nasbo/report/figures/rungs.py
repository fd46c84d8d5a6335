"""Figures of rungs: all learning curves, and a table of what was seen at each rung."""

from __future__ import annotations

from nasbo.history import Rungs, Trial
from nasbo.report.axes import Frame, Scale, beyond_text, log_limits, number_text, value_limits
from nasbo.report.drawing import Dot, Drawing, Line, Shape, Words, legend, legend_height
from nasbo.report.figures.settings import promotions_text, table
from nasbo.report.rungs import COLUMNS, rung_cells
from nasbo.report.study import Figure, NoDataError, Study, key_of
from nasbo.report.tensorboard import clean_curve
from nasbo.sweeps.rungs import promoted_at, rung_rows
from nasbo.sweeps.spending import n_trained, n_whole

WIDTH, HEIGHT = 1180.0, 400.0
LEFT, RIGHT = 70.0, 24.0
LOG_FROM = 5.0
"""Values to be minimised that span more than this factor are on a logarithmic scale."""


def draw_learning_curves(study: Study) -> Figure:
    """A line per trial over the steps of its training, the rungs as vertical lines.

    Raises:
        NoDataError: there are no rungs, or no trial has told a value yet.
    """
    rungs, drawn = _rungs(study), _drawn(study)
    if not drawn:
        raise NoDataError("no trial has told a value so far")
    entries = study.group_legend()
    top = 44.0 + legend_height(entries, WIDTH - LEFT - RIGHT)
    x = Scale(1, rungs.full, LEFT, WIDTH - RIGHT, is_log=True)
    values = [value for curve in drawn.values() for _, value in curve]
    ends = value_limits(values, study.mode)
    is_log = study.mode == "min" and 0 < LOG_FROM * min(values) < ends[1]
    ends = log_limits((min(values), ends[1])) if is_log else ends
    y = Scale(*ends, top + HEIGHT - 100, top, is_log)
    drawing = Drawing(WIDTH, top + HEIGHT - 50)
    drawing.extend(Frame(x, y, "step", study.metric).shapes(has_x_ticks=False))
    drawing.extend(_rung_lines(rungs, x, y))
    for trial in _in_order(study, drawn):
        drawing.extend(_curve(study, trial, drawn[trial.id], x, y))
    drawing.extend(legend(entries, LEFT, 16, WIDTH - LEFT - RIGHT))
    caption = (
        "Each line is a training, over steps on a logarithmic scale. The vertical lines are the "
        "rungs, at which trials pause; a dot is a promotion, from which the trial went on; a thick "
        f"line is a full training.{beyond_text(values, ends)}{study.thinned}{study.grouped}"
    )
    caption += f" {study.metric} is on a logarithmic scale, too." if is_log else ""
    return Figure("learning-curves", "Learning curves and rungs", caption, drawing, is_wide=True)


def _rungs(study: Study) -> Rungs:
    if study.history.rungs is None:
        raise NoDataError("the sweep has no rungs: all trials are trained in full")
    return study.history.rungs


def _drawn(study: Study) -> dict[int, list[tuple[int, float]]]:
    """The curve of each trial that is drawn, by its number."""
    found = {trial.id: clean_curve(trial.curve) for trial in study.history.suggested}
    return {number: curve for number, curve in found.items() if curve and number in study.drawn}


def _in_order(study: Study, drawn: dict[int, list[tuple[int, float]]]) -> list[Trial]:
    """The longest curves last, above the others."""
    trials = [trial for trial in study.history.suggested if trial.id in drawn]
    return sorted(trials, key=lambda trial: (drawn[trial.id][-1][0], trial.id))


def _rung_lines(rungs: Rungs, x: Scale, y: Scale) -> list[Shape]:
    """A vertical line at each rung, dashed where it was dropped, with its step below."""
    shapes: list[Shape] = []
    for step in dict.fromkeys((1, *rungs.steps)):
        is_dropped = step in rungs.dropped
        if step in rungs.lower:
            points = [(x(step), y.end), (x(step), y.start)]
            shapes.append(Line(points, "muted", 1.2, is_dashed=is_dropped))
        words = f"{step} (dropped)" if is_dropped else str(step)
        shapes.append(Line([(x(step), y.start), (x(step), y.start + 4)], "axis"))
        shapes.append(Words(x(step), y.start + 18, words, 11, "muted", "middle"))
    return shapes


def _curve(
    study: Study, trial: Trial, curve: list[tuple[int, float]], x: Scale, y: Scale
) -> list[Shape]:
    """The line of a training, and a dot at each promotion."""
    color, key, words = study.color(trial), key_of(trial), _words(study, trial)
    width, opacity = (2.0, 0.95) if trial.state == "finished" else (1.2, 0.5)
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


def list_rungs(study: Study) -> Figure:
    """One row per rung, as in ``nasbo status``.

    Raises:
        NoDataError: there are no rungs.
    """
    _rungs(study)
    rows = rung_rows(study.history)
    bests = ["-" if row.best is None else number_text(row.best, 5) for row in rows]
    cells = [rung_cells(row, best) for row, best in zip(rows, bests, strict=True)]
    names = ["" if name == "best" else name for name in COLUMNS]
    names[COLUMNS.index("best")] = f"best {study.metric}"
    caption = (
        "Configs that were seen at each rung or failed on the way there, and what became of them. "
        "Agreement is the rank correlation with the next rung, and of how many trials; where it is "
        f"low, a rung is dropped, and no further trial pauses there. {_saved(study)}"
    )
    return Figure("rungs", "Rungs", caption.strip(), html=table(names, cells))


def _saved(study: Study) -> str:
    """Steps that were saved compared with full trainings of all configs."""
    history = study.history
    used, whole = n_trained(trial.first for trial in history.suggested), n_whole(history)
    if not whole:
        return ""
    return (
        f"Epochs saved: {whole - used:,} of {whole:,} ({1 - used / whole:.0%}), which full "
        f"trainings of all configs that did not fail would have taken; {used:,} were trained."
    )
