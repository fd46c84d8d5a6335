"""Several sweeps' folders come in; one page that sets them side by side goes out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from nasbo.errors import NasboError
from nasbo.report.axes import Frame, Scale, number_text, step_points, value_limits
from nasbo.report.drawing import (
    SERIES,
    Box,
    Dot,
    Drawing,
    Line,
    Shape,
    Words,
    legend,
    legend_height,
    shorten_text,
)
from nasbo.report.figures.settings import table
from nasbo.report.page import Page, attempt, to_html
from nasbo.report.panels import PANELS, draw_panels, set_beside
from nasbo.report.progress import covered, duration
from nasbo.report.study import Figure, NoDataError, Study, open_study, value_of
from nasbo.report.write import check_file, write_text

WIDTH, HEIGHT = 1180.0, 420.0
COMPARE_FILE = "compare.html"


def write_comparison(folders: Sequence[Path], out: Path | None = None) -> Path:
    """Write the page that compares sweeps.

    Args:
        folders: of at least two sweeps with one mode and metric.
        out: the HTML file; default ``compare.html`` in the working directory.

    Raises:
        NasboError: fewer than two, or sweeps whose values cannot be compared.
    """
    path = out or Path(COMPARE_FILE)
    check_file(path)
    if len(folders) < 2:
        raise NasboError(f"at least two sweeps are needed to compare, got {len(folders)}")
    studies = [open_study(folder) for folder in folders]
    goals = {(study.mode, study.metric) for study in studies}
    if len(goals) > 1:
        told = ", ".join(f"{mode} {metric}" for mode, metric in sorted(goals))
        raise NasboError(f"sweeps must have one mode and metric to be compared, got {told}")
    write_text(path, to_html(make_comparison(studies)))
    return path


def make_comparison(studies: Sequence[Study]) -> Page:
    """Curves of all sweeps, the report's figures of each, and a table.

    Medians where a method, with options, has several seeds.
    """
    studies = set_beside(studies)
    valued = [study for study in studies if study.valued]
    results = {name: attempt(draw, valued) for name, draw in COMPARISONS.items()}
    for name, panel in PANELS.items():
        results[name] = attempt(partial(draw_panels, panel), studies)
    figures = [one for one in results.values() if isinstance(one, Figure)] + [_table(studies)]
    left_out = [(name, why) for name, why in results.items() if isinstance(why, str)]
    methods = Counter(map(method_name, studies))
    counts = (f"{name}: {n} sweep{'s' * (n > 1)}" for name, n in methods.items())
    subtitle = ", ".join(counts)
    tiles = [
        (number_text(value_of(study.ranked[0]), 5), f"best {study.metric} of {study.name}")
        for study in valued[:8]
    ]
    return Page(f"{len(studies)} sweeps", subtitle, tiles, figures, left_out)


def method_name(study: Study) -> str:
    """The method of a sweep with its options: sweeps of one name differ by their seed."""
    options = ",".join(f"{key}={value}" for key, value in _options(study))
    return study.sweep.method + (f"[{options}]" if options else "")


def _options(study: Study) -> list[tuple[str, Any]]:
    return sorted(study.sweep.method_options.items())


def method_colors(studies: Sequence[Study]) -> dict[str, str]:
    """A colour for each method with its options, in the order in which they come."""
    names = dict.fromkeys(map(method_name, studies))
    return dict(zip(names, (*SERIES, *["muted"] * len(names)), strict=False))


def _curves(studies: Sequence[Study]) -> Figure:
    """Best so far of every sweep, and the median of each method's seeds."""
    if not studies:
        raise NoDataError("no sweep has a value so far")
    values = [value for study in studies for value in study.values]
    length = max(len(study.ended) for study in studies)
    x = Scale(0, length + 1, 70, WIDTH - 20)
    bests = [v for s in studies for v in s.history.best_so_far() if not math.isnan(v)]
    y = Scale(*value_limits(bests or values, studies[0].mode), HEIGHT - 56, 56)
    drawing = Drawing(WIDTH, HEIGHT)
    drawing.extend(Frame(x, y, "trials that have ended", f"best {studies[0].metric}").shapes())
    colors = method_colors(studies)
    for method, color in colors.items():
        own = [study for study in studies if method_name(study) == method]
        drawing.extend(_method_curves(own, color, x, y))
    drawing.extend(legend(list(colors.items()), 70, 16, WIDTH - 90))
    caption = (
        "Thin lines are single sweeps; the thick line is the median of a method's sweeps, as far "
        "as all of them have come."
    )
    return Figure("best-so-far", "Best so far by method", caption, drawing, is_wide=True)


def _method_curves(studies: Sequence[Study], color: str, x: Scale, y: Scale) -> list[Shape]:
    curves = [study.history.best_so_far() for study in studies]
    width, opacity = (1.2, 0.55) if len(curves) > 1 else (2.4, 1.0)
    shapes: list[Shape] = []
    for study, curve in zip(studies, curves, strict=True):
        words = f"{study.name}, seed {study.sweep.seed}"
        shapes.append(Line(step_points(curve, x, y), color, width, opacity, label=words))
    if len(curves) > 1:
        middle = [_median(column) for column in zip(*curves, strict=False)]
        words = f"median of {len(curves)} sweeps by {method_name(studies[0])}"
        shapes.append(Line(step_points(middle, x, y), color, 3.0, label=words))
    return shapes


def _median(values: Sequence[float]) -> float:
    """Not a number as long as one of the sweeps has no value."""
    return math.nan if any(map(math.isnan, values)) else median(values)


def _finals(studies: Sequence[Study]) -> Figure:
    """The best value of each sweep, a row per method."""
    if not studies:
        raise NoDataError("no sweep has a value so far")
    colors = method_colors(studies)
    bests = [value_of(study.ranked[0]) for study in studies]
    x = Scale(*value_limits(bests, studies[0].mode), 150, 540)
    height = 76.0 + 36 * len(colors)
    drawing = Drawing(560, height)
    y = Scale(0, 1, height - 52, 20)
    frame = Frame(x, y, f"best {studies[0].metric}")
    drawing.extend(frame.shapes(has_y_ticks=False))
    for place, (method, color) in enumerate(colors.items()):
        level = 38.0 + 36 * place
        drawing.add(Line([(x.start, level), (x.end, level)], "grid"))
        drawing.add(Words(140, level + 4, shorten_text(method, 18), anchor="end"))
        own = [study for study in studies if method_name(study) == method]
        for study in own:
            best = value_of(study.ranked[0])
            words = f"{study.name}, seed {study.sweep.seed}: {number_text(best, 5)}"
            drawing.add(Dot(x(best), level, 5, color, 0.85, words))
        middle = x(median(value_of(study.ranked[0]) for study in own))
        drawing.add(Line([(middle, level - 12), (middle, level + 12)], "ink", 2.0))
    caption = "A dot is a sweep, the line the median of a method."
    return Figure("best-values", "Best values by method", caption, drawing)


def _subspace_shares(studies: Sequence[Study]) -> Figure:
    """Where each sweep spent its trials, by subspace."""
    if not studies:
        raise NoDataError("no sweep has a value so far")
    if len({study.history.space.fingerprint() for study in studies}) > 1:
        raise NoDataError("the sweeps have different spaces")
    entries = studies[0].group_legend()
    top = 26.0 + legend_height(entries, 540)
    drawing = Drawing(560, top + 34 * len(studies) + 10)
    drawing.extend(legend(entries, 10, 16, 540))
    for place, study in enumerate(studies):
        level = top + 34 * place
        drawing.add(Words(140, level + 15, shorten_text(study.name, 18), anchor="end"))
        drawing.extend(_share_bar(study, entries, level))
    caption = "Part of the trials that went to each subspace." + studies[0].grouped
    return Figure("subspace-shares", "Where the budgets went", caption, drawing)


def _share_bar(study: Study, entries: Sequence[tuple[str, str]], level: float) -> list[Shape]:
    colors = dict(entries)
    counts = Counter(colors.get(study.group(trial), "muted") for trial in study.history.configs)
    total = max(counts.total(), 1)
    shapes: list[Shape] = []
    left = 150.0
    for name, color in entries:
        width = 390.0 * counts[color] / total
        words = f"{study.name}, {name}: {counts[color]} of {total}"
        shapes.append(Box(left, level, max(width - 1, 0.0), 20, color, 0.9, 1.5, words))
        left += width
    return shapes


def _table(studies: Sequence[Study]) -> Figure:
    head = [
        "sweep",
        "method",
        "options",
        "seed",
        "state",
        "trials",
        "failed",
        "best",
        "trial",
        "time",
    ]
    html = table(head, (_row(study) for study in studies))
    caption = "Time is that in which at least one trial ran, without interruptions."
    return Figure("sweeps", "Sweeps", caption, html=html, is_wide=True)


def _row(study: Study) -> list[object]:
    options = " ".join(f"{key}={value}" for key, value in _options(study))
    best = study.ranked[0] if study.ranked else None
    history = study.history
    time_s = covered(span for trial in history.ran for span in trial.spans(history.last_time))
    return [
        study.name,
        study.sweep.method,
        options or "–",
        study.sweep.seed,
        study.state,
        f"{study.history.n_ended} / {study.budget}",
        study.history.state_counts()["failed"],
        number_text(value_of(best), 5) if best else "–",
        best.id if best else "–",
        duration(time_s) if time_s else "–",
    ]


COMPARISONS = {
    "best-so-far": _curves,
    "best-values": _finals,
    "subspace-shares": _subspace_shares,
}
