"""Registry of the report's figures by name, in their order."""

from __future__ import annotations

from collections.abc import Callable

from nasbo.report.figures.architecture import draw_architectures
from nasbo.report.figures.attention import draw_attention
from nasbo.report.figures.course import draw_best_so_far, draw_budget, draw_subspaces
from nasbo.report.figures.curves import draw_learning_curves
from nasbo.report.figures.hypervolume import draw_hypervolume
from nasbo.report.figures.lengthscales import draw_lengthscales
from nasbo.report.figures.parameters import draw_importance, draw_parallel
from nasbo.report.figures.pareto import draw_pareto
from nasbo.report.figures.rungs import list_rungs
from nasbo.report.figures.running import draw_endings, draw_suggestion_cost, draw_timeline
from nasbo.report.figures.settings import list_best, list_settings
from nasbo.report.figures.slices import draw_slices
from nasbo.report.figures.trials import list_trials
from nasbo.report.figures.trust import draw_calibration
from nasbo.report.study import Figure, Study

FIGURES: dict[str, Callable[[Study], Figure]] = {
    "best-so-far": draw_best_so_far,
    "subspaces": draw_subspaces,
    "budget": draw_budget,
    "learning-curves": draw_learning_curves,
    "pareto": draw_pareto,
    "architectures": draw_architectures,
    "best-trials": list_best,
    "trials": list_trials,
    "importance": draw_importance,
    "calibration": draw_calibration,
    "slices": draw_slices,
    "parallel": draw_parallel,
    "attention": draw_attention,
    "lengthscales": draw_lengthscales,
    "timeline": draw_timeline,
    "failures": draw_endings,
    "suggestion-cost": draw_suggestion_cost,
    "settings": list_settings,
}
RUNG_FIGURES: dict[str, Callable[[Study], Figure]] = {
    "rungs": list_rungs,
}
FRONT_FIGURES: dict[str, Callable[[Study], Figure]] = {
    "hypervolume": draw_hypervolume,
}


def figures_of(study: Study) -> dict[str, Callable[[Study], Figure]]:
    """The figures of a report in their order; those of rungs only if there are rungs, those of
    fronts only with several objectives.
    """
    if len(study.history.objectives) > 1:
        return {"pareto": FIGURES["pareto"]} | FRONT_FIGURES | FIGURES
    if study.history.rungs is None:
        return FIGURES
    first = ("best-so-far", "rungs", "learning-curves")
    return {name: (FIGURES | RUNG_FIGURES)[name] for name in first} | FIGURES
