"""Figure of the front's hypervolume over the ended trials, for several objectives."""

from __future__ import annotations

from nasbo.report.axes import Frame, Scale, limits, number_text, step_points
from nasbo.report.drawing import Drawing, Line
from nasbo.report.study import Figure, NoDataError, Study

WIDTH, HEIGHT = 560.0, 340.0


def draw_hypervolume(study: Study) -> Figure:
    """The hypervolume after each ended trial, above the reference point of the sweep."""
    history = study.history
    if len(history.objectives) == 1:
        raise NoDataError("the sweep has one objective")
    curve = list(enumerate(history.hypervolume_so_far(), start=1))
    if history.reference is None or not curve:
        raise NoDataError("there is no reference point before the design has ended")
    x = Scale(0, len(curve) + 1, 64, WIDTH - 16)
    y = Scale(*limits([0.0, *(volume for _, volume in curve)]), HEIGHT - 56, 40)
    drawing = Drawing(WIDTH, HEIGHT)
    drawing.extend(Frame(x, y, "trials that have ended", "hypervolume").shapes())
    drawing.add(Line(step_points(curve, x, y), "ink", 2.0))
    parts = zip(history.objectives, history.reference.values, strict=True)
    corner = ", ".join(f"{one.metric} {number_text(value)}" for one, value in parts)
    logs = zip(history.objectives, history.reference.is_log, strict=True)
    taken = " and ".join(one.metric for one, is_log in logs if is_log)
    caption = f"What the front dominates above {corner}, the worst of the design"
    caption += f"; {taken} on a logarithmic scale." if taken else "."
    return Figure("hypervolume", "Hypervolume", caption, drawing)
