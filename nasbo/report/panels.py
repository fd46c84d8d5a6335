"""Figures of the comparison page with one panel per sweep, on common scales."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from html import escape

from nasbo.report.figures.architecture import draw_architectures
from nasbo.report.figures.parameters import draw_importance
from nasbo.report.figures.pareto import draw_pareto
from nasbo.report.figures.running import draw_endings, draw_suggestion_cost, draw_timeline
from nasbo.report.figures.trust import draw_calibration
from nasbo.report.page import attempt
from nasbo.report.study import Figure, NoDataError, Study
from nasbo.report.svg import to_svg

PANELS: dict[str, Callable[[Study], Figure]] = {
    "pareto": partial(draw_pareto, is_stacked=True),
    "architectures": partial(draw_architectures, n_networks=1),
    "importance": draw_importance,
    "calibration": draw_calibration,
    "timeline": draw_timeline,
    "failures": draw_endings,
    "suggestion-cost": draw_suggestion_cost,
}
"""Figures of single sweeps that are worth comparing."""


def set_beside(studies: Sequence[Study]) -> list[Study]:
    """The same studies, with common scales and colours of their figures."""
    beside: list[Study] = []
    beside += [replace(study, beside=beside) for study in studies]
    return beside


def draw_panels(draw: Callable[[Study], Figure], studies: Sequence[Study]) -> Figure:
    """One figure of all sweeps: two panels per row, wide ones below each other.

    Raises:
        NoDataError: no sweep has data for it.
    """
    results = [attempt(draw, study) for study in studies]
    drawn = {index: one for index, one in enumerate(results) if isinstance(one, Figure)}
    missing = _missing(studies, results)
    if not drawn:
        causes = {one for one in results if isinstance(one, str)}
        raise NoDataError(causes.pop() if len(causes) == 1 else "; ".join(missing))
    first = next(iter(drawn.values()))
    shared, own = split_captions([figure.caption for figure in drawn.values()])
    panels = [
        _panel(index, studies[index], figure, words)
        for (index, figure), words in zip(drawn.items(), own, strict=True)
    ]
    kind = "panels rows" if first.is_wide else "panels"
    html = f'<div class="{kind}">{"".join(panels)}</div>'
    caption = " ".join([shared, *(f"Left out: {words}." for words in missing)]).strip()
    return replace(first, caption=caption, drawing=None, html=html, is_wide=True)


def _missing(studies: Sequence[Study], results: Sequence[Figure | str]) -> list[str]:
    """Sweeps without a figure and the reason, grouped by reason."""
    names: dict[str, list[str]] = {}
    for study, result in zip(studies, results, strict=True):
        if isinstance(result, str):
            names.setdefault(result, []).append(study.name)
    return [f"{', '.join(own)} ({why})" for why, own in names.items()]


def _panel(index: int, study: Study, figure: Figure, words: str) -> str:
    title = f"{study.name}: {study.sweep.method}, seed {study.sweep.seed}"
    picture = figure.html
    if figure.drawing is not None:
        picture = to_svg(figure.drawing, f"{figure.title} of {title}. {figure.caption}")
    return (
        f'<section data-sweep="{index}"><h3>{escape(title)}</h3>'
        f'<div class="scroll">{picture}</div><p>{escape(words)}</p></section>'
    )


def split_captions(captions: Sequence[str]) -> tuple[str, list[str]]:
    """The sentences that all captions share, and the remaining ones of each."""
    sentences = [re.split(r"(?<=[.!?]) (?=[A-Z])", caption) for caption in captions]
    is_shared = set(sentences[0]).intersection(*sentences[1:])
    shared = [one for one in sentences[0] if one in is_shared]
    own = [" ".join(one for one in each if one not in is_shared) for each in sentences]
    return " ".join(shared), own
