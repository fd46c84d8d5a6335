"""Table of what was seen at each rung."""

from __future__ import annotations

from nasbo.history import Rungs
from nasbo.report.axes import number_text
from nasbo.report.figures.settings import table
from nasbo.report.rungs import COLUMNS, rung_cells
from nasbo.report.study import Figure, NoDataError, Study
from nasbo.sweeps.rungs import rung_rows
from nasbo.sweeps.spending import n_trained, n_whole


def _rungs(study: Study) -> Rungs:
    if study.history.rungs is None:
        raise NoDataError("the sweep has no rungs: all trials are trained in full")
    return study.history.rungs


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
