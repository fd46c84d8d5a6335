"""HTML page that compares several sweeps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

from nasbo.errors import NasboError
from nasbo.report.axes import Frame, Scale, number_text, step_points, value_limits
from nasbo.report.drawing import (
    LEGEND_ROW,
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
from nasbo.report.setups import (
    VALUE_MAKERS,
    setting_words,
    setup_names,
    varying_settings,
    warning,
)
from nasbo.report.study import Figure, NoDataError, Study, open_study, values_text
from nasbo.report.write import check_file, write_text
from nasbo.sweeps.spending import budget_text, whole_course

WIDTH, HEIGHT = 1180.0, 420.0
COMPARE_FILE = "compare.html"
_OWN_COLUMNS = ("method", "method_options")


def write_comparison(folders: Sequence[Path], out: Path | None = None) -> Path:
    """Write the page that compares sweeps.

    Args:
        folders: at least two sweeps with the same mode and metric.
        out: the HTML file; by default ``compare.html`` in the working directory.

    Raises:
        NasboError: fewer than two sweeps, or sweeps with different modes or metrics.
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
    """Curves of all sweeps, figures of each sweep, and a table.

    Medians are over sweeps that differ only in the seed and the budget.
    """
    studies = set_beside(studies)
    valued = [study for study in studies if study.valued]
    results = {name: attempt(draw, valued) for name, draw in COMPARISONS.items()}
    for name, panel in PANELS.items():
        results[name] = attempt(partial(draw_panels, panel), studies)
    figures = [one for one in results.values() if isinstance(one, Figure)] + [_table(studies)]
    left_out = [(name, why) for name, why in results.items() if isinstance(why, str)]
    counts = ((name, len(own)) for name, own in by_setup(studies).items())
    subtitle = ", ".join(f"{name}: {n} sweep{'s' * (n > 1)}" for name, n in counts)
    tiles = [
        (number_text(study.best_value, 5), f"best {study.metric} of {study.name}")
        for study in valued[:8]
    ]
    title = f"{len(studies)} sweeps"
    return Page(title, subtitle, tiles, figures, left_out, warning(studies))


def by_setup(studies: Sequence[Study]) -> dict[str, list[Study]]:
    """Sweeps by the names of their setups, in the order of the setups."""
    together = studies[0].together if studies and studies[0].beside else studies
    names = dict(zip(map(id, together), setup_names(together), strict=True))
    found: dict[str, list[Study]] = {}
    for study in studies:
        found.setdefault(names[id(study)], []).append(study)
    return found


def _colored(studies: Sequence[Study]) -> list[tuple[str, str, list[Study]]]:
    """Name, colour and sweeps of each setup."""
    groups = by_setup(studies)
    colors = (*SERIES, *["muted"] * len(groups))
    return [(name, color, own) for (name, own), color in zip(groups.items(), colors, strict=False)]


def _curves(studies: Sequence[Study]) -> Figure:
    """Best so far of every sweep, and the median over the seeds of each setup."""
    if not studies:
        raise NoDataError("no sweep has a value so far")
    values = [value for study in studies for value in study.values]
    length = max(len(whole_course(study.history)) for study in studies)
    x = Scale(0, length + 1, 70, WIDTH - 20)
    bests = [v for s in studies for v in whole_course(s.history) if not math.isnan(v)]
    setups = _colored(studies)
    entries = [(name, color) for name, color, _ in setups]
    top = legend_height(entries, WIDTH - 90) - LEGEND_ROW
    y = Scale(*value_limits(bests or values, studies[0].mode), HEIGHT + top - 56, top + 56)
    drawing = Drawing(WIDTH, HEIGHT + top)
    titles = dict.fromkeys(study.budget_title for study in studies)
    drawing.extend(Frame(x, y, ", or ".join(titles), f"best {studies[0].metric}").shapes())
    for name, color, own in setups:
        drawing.extend(_setup_curves(name, own, color, x, y))
    drawing.extend(legend(entries, 70, 16, WIDTH - 90))
    caption = (
        "Thin lines are single sweeps; a thick line is the median of sweeps that differ in nothing "
        "but the seed, as far as all of them have come."
    )
    return Figure("best-so-far", "Best so far", caption, drawing, is_wide=True)


def _setup_curves(
    name: str, studies: Sequence[Study], color: str, x: Scale, y: Scale
) -> list[Shape]:
    curves = [whole_course(study.history) for study in studies]
    width, opacity = (1.2, 0.55) if len(curves) > 1 else (2.4, 1.0)
    shapes: list[Shape] = []
    for study, curve in zip(studies, curves, strict=True):
        words = f"{study.name}, seed {study.sweep.seed}"
        shapes.append(Line(_steps(curve, x, y), color, width, opacity, label=words))
    if len(curves) > 1:
        middle = [_median(column) for column in zip(*curves, strict=False)]
        words = f"median of {len(curves)} sweeps by {name}"
        shapes.append(Line(_steps(middle, x, y), color, 3.0, label=words))
    return shapes


def _steps(curve: Sequence[float], x: Scale, y: Scale) -> list[tuple[float, float]]:
    return step_points([*enumerate(curve, start=1)], x, y)


def _median(values: Sequence[float]) -> float:
    """Median; NaN while one of the sweeps has no value."""
    return math.nan if any(map(math.isnan, values)) else median(values)


def _finals(studies: Sequence[Study]) -> Figure:
    """The best value of each sweep, one row per setup."""
    if not studies:
        raise NoDataError("no sweep has a value so far")
    setups = _colored(studies)
    bests = [study.best_value for study in studies]
    left = min(max(150.0, 24 + 6.6 * max(len(name) for name, _, _ in setups)), 290.0)
    x = Scale(*value_limits(bests, studies[0].mode), left, 540)
    height = 76.0 + 36 * len(setups)
    drawing = Drawing(560, height)
    y = Scale(0, 1, height - 52, 20)
    frame = Frame(x, y, f"best {studies[0].metric}")
    drawing.extend(frame.shapes(has_y_ticks=False))
    for index, (name, color, own) in enumerate(setups):
        level = 38.0 + 36 * index
        drawing.add(Words(left - 10, level + 4, shorten_text(name, int(left / 6.8)), anchor="end"))
        drawing.extend(_final_marks(own, color, x, level))
    caption = "A dot is a sweep, the line the median of those that differ in nothing but the seed."
    if any(study.ranked[0].estimate for study in studies):
        caption += " Where a method has found noise, it is what it expects of the best trial."
    return Figure("best-values", "Best values", caption, drawing)


def _final_marks(studies: Sequence[Study], color: str, x: Scale, level: float) -> list[Shape]:
    shapes: list[Shape] = [Line([(x.start, level), (x.end, level)], "grid")]
    for study in studies:
        best = study.best_value
        words = f"{study.name}, seed {study.sweep.seed}: {number_text(best, 5)}"
        shapes.append(Dot(x(best), level, 5, color, 0.85, words))
    middle = x(median(study.best_value for study in studies))
    return [*shapes, Line([(middle, level - 12), (middle, level + 12)], "ink", 2.0)]


def _subspace_shares(studies: Sequence[Study]) -> Figure:
    """Share of each sweep's trials, by subspace."""
    if not studies:
        raise NoDataError("no sweep has a value so far")
    if len({study.history.space.fingerprint() for study in studies}) > 1:
        raise NoDataError("the sweeps have different spaces")
    entries = studies[0].group_legend()
    top = 26.0 + legend_height(entries, 540)
    drawing = Drawing(560, top + 34 * len(studies) + 10)
    drawing.extend(legend(entries, 10, 16, 540))
    for index, study in enumerate(studies):
        level = top + 34 * index
        drawing.add(Words(140, level + 15, shorten_text(study.name, 18), anchor="end"))
        drawing.extend(_share_bar(study, entries, level))
    caption = "Part of the trials that went to each subspace." + studies[0].grouped
    return Figure("subspace-shares", "Where the budgets went", caption, drawing)


def _share_bar(study: Study, entries: Sequence[tuple[str, str]], level: float) -> list[Shape]:
    colors = dict(entries)
    counts = Counter(colors.get(study.group(trial), "muted") for trial in study.history.trials)
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
    others = [name for name in varying_settings(studies) if name not in _OWN_COLUMNS]
    head = ["sweep", "method", "options", *(VALUE_MAKERS.get(name, name) for name in others)]
    head += ["seed", "state", "trials", "failed", "best", "trial", "time"]
    html = table(head, (_row(study, others) for study in studies))
    caption = "Time is that in which at least one trial ran, without interruptions."
    if others:
        caption += " Columns between options and seed are settings in which the sweeps differ."
    return Figure("sweeps", "Sweeps", caption, html=html, is_wide=True)


def _row(study: Study, others: Sequence[str]) -> list[object]:
    best = study.ranked[0] if study.ranked else None
    history = study.history
    time_s = covered(span for run in history.runs for span in run.spans(history.last_time))
    return [
        study.name,
        study.sweep.method,
        setting_words(study, "method_options"),
        *(setting_words(study, name) for name in others),
        study.sweep.seed,
        study.state,
        _used_words(study),
        study.history.state_counts()["failed"],
        values_text(best) if best else "–",
        best.id if best else "–",
        duration(time_s) if time_s else "–",
    ]


def _used_words(study: Study) -> str:
    if study.history.rungs is None:
        return f"{study.history.n_ended} / {study.budget}"
    return budget_text(study.history, study.budget)


COMPARISONS = {
    "best-so-far": _curves,
    "best-values": _finals,
    "subspace-shares": _subspace_shares,
}
