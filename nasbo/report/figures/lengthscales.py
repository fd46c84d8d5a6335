"""Figure of the lengthscales and the noise of a method's model."""

from __future__ import annotations

from collections.abc import Mapping

from nasbo.report.axes import Frame, Scale, log_limits, number_text
from nasbo.report.drawing import Dot, Drawing, Line, Words, shorten_text
from nasbo.report.figures.settings import table
from nasbo.report.importance import name_of
from nasbo.report.study import Figure, NoDataError, Study

NAME, TITLE = "lengthscales", "Lengthscales and noise"
WIDTH, ROW, TOP = 560.0, 24.0, 12.0
MAX_NAMES = 16
LONG = 30.0
"""End of the axis: longer lengthscales all mean the same to a reader."""


def draw_lengthscales(study: Study) -> Figure:
    """One row per parameter, shortest lengthscale first, with one dot per list element.

    Raises:
        NoDataError: the model has neither lengthscales nor a noise variance.
    """
    study.require_values(2)
    told, noise = study.explanation, _noise(study)
    if told.lengthscales:
        drawing = _draw(told.lengthscales)
        return Figure(NAME, TITLE, " ".join([*_captions(told.lengthscales), *noise]), drawing)
    if not noise or told.noise_sd is None:
        method = study.sweep.method
        raise NoDataError(f"the method {method} has neither lengthscales nor a noise to show")
    row = ["standard deviation of the noise", number_text(told.noise_sd)]
    return Figure(NAME, TITLE, noise[0], html=table([], [row]))


def _draw(lengths: Mapping[str, float]) -> Drawing:
    rows = _rows(lengths)
    bottom = TOP + ROW * len(rows)
    drawing = Drawing(WIDTH, bottom + 48)
    shown = [length for row in rows.values() for length in row.values()]
    x = Scale(
        *log_limits([1.0, *(min(length, LONG) for length in shown)]), 150, WIDTH - 24, is_log=True
    )
    frame = Frame(x, Scale(0, 1, bottom, TOP), "lengthscale, in parts of the range")
    drawing.extend(frame.shapes(has_y_ticks=False))
    drawing.add(Line([(x(1.0), TOP), (x(1.0), bottom)], "muted", 1.2, is_dashed=True))
    for at, (name, row) in enumerate(rows.items()):
        level = TOP + ROW * (at + 0.5)
        drawing.add(Words(x.start - 10, level + 4, shorten_text(name, 20), anchor="end"))
        drawing.add(Line([(x.start, level), (x.end, level)], "grid"))
        for label, length in row.items():
            drawing.add(Dot(x(length), level, 4.5, "c1", 0.75, f"{label}: {number_text(length)}"))
    return drawing


def _rows(lengths: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Lengthscales by name and label; names with the shortest ones first."""
    rows: dict[str, dict[str, float]] = {}
    for label, length in sorted(lengths.items(), key=lambda one: one[1]):
        rows.setdefault(name_of(label), {})[label] = length
    return dict(list(rows.items())[:MAX_NAMES])


def _captions(lengths: Mapping[str, float]) -> list[str]:
    captions = [
        "How far apart two values of a parameter must be for their scores to have little in "
        "common, as the model has learned it: the score changes fast along short lengthscales, and "
        "hardly along those far beyond the dashed line, the whole range. Two different choices are "
        "at distance 1; a list has a dot for each position. With few results lengthscales are "
        "still near the model's first guess."
    ]
    if n_long := sum(length > LONG for length in lengths.values()):
        captions.append(f"Above {LONG:g}, at the end of the axis: {n_long:,}.")
    n_others = len({name_of(label) for label in lengths}) - MAX_NAMES
    return captions + ([f"Left out, with longer ones: {n_others:,}."] if n_others > 0 else [])


def _noise(study: Study) -> list[str]:
    sd = study.explanation.noise_sd
    if sd is None:
        return []
    return [
        "By the model, the same config would come out again with a standard deviation of "
        f"{number_text(sd)} in {study.metric}."
    ]
