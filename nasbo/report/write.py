"""Writer of a sweep's report as an HTML file, and of single figures as PNG."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from nasbo.errors import NasboError
from nasbo.history import By, Trial
from nasbo.report.axes import number_text
from nasbo.report.figures import FIGURES, FRONT_FIGURES, RUNG_FIGURES, figures_of
from nasbo.report.figures.running import busy_share, down_spans, placed_stays
from nasbo.report.figures.trials import NAME as TRIALS
from nasbo.report.page import Page, attempt, collect, to_html
from nasbo.report.png import write_png
from nasbo.report.progress import covered, duration
from nasbo.report.study import Study, open_study, value_of
from nasbo.report.trials import without_words
from nasbo.storage.mirror import push
from nasbo.sweeps.rungs import at_step
from nasbo.sweeps.spending import n_full, n_trained, n_whole

REPORT_FILE = "report.html"


def write_report(folder: Path, out: Path | None = None, by: By = "estimate") -> Path:
    """Write the report of a sweep, which may be running.

    Args:
        folder: of the sweep.
        out: the HTML file; by default ``report.html`` in the folder, and in its bucket if it is a
            mirror.
        by: criterion that ranks trials.

    Raises:
        SweepError: the folder has no sweep, or its bucket cannot be written.
        NasboError: the file cannot be written.
    """
    path = out or folder / REPORT_FILE
    check_file(path)
    study = open_study(folder, by)
    is_inside = path.resolve().parent == study.folder.path.resolve()
    write_text(path, to_html(make_page(replace(study, is_linked=is_inside))))
    if out is None:
        push(folder, (REPORT_FILE,))
    return path


def write_figure(folder: Path, name: str, path: Path, by: By = "estimate") -> None:
    """Write one figure of a sweep's report as PNG.

    Raises:
        NasboError: there is no such figure, no data for it, or it is a table.
    """
    known = FIGURES | RUNG_FIGURES | FRONT_FIGURES
    if name not in known:
        raise NasboError(f"unknown figure {name!r}; known: {', '.join(known)}")
    study = open_study(folder, by)
    figure = attempt(known[name], study)
    if isinstance(figure, str):
        raise NasboError(f"{study.folder.name}: no figure {name!r}: {figure}")
    if figure.picture is None:
        raise NasboError(f"{name!r} is a table, not a picture; nasbo export prints all trials")
    write_png(figure.picture, path)


def check_file(path: Path) -> None:
    """Raise ``NasboError`` early if the path of a file is a folder."""
    if path.is_dir():
        raise NasboError(f"{path}: must be a file to write, but is a folder")


def write_text(path: Path, text: str) -> None:
    """Write a file atomically."""
    check_file(path)
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise NasboError(f"{path}: cannot be written: {error}") from error


def make_page(study: Study) -> Page:
    """All figures of a study, with the numbers for the top of the page."""
    figures, left_out = collect(study, figures_of(study))
    goal = "maximised" if study.mode == "max" else "minimised"
    subtitle = (
        f"{study.sweep.method} on {Path(study.sweep.space).name}, trainer {study.sweep.trainer}, "
        f"{study.metric} {goal}, seed {study.sweep.seed}"
    )
    if any(figure.name == TRIALS for figure in figures):
        figures = [without_words(study, figure) for figure in figures]
    return Page(f"Sweep {study.address}", subtitle, _tiles(study), figures, left_out)


def _best_words(study: Study, best: Trial) -> str:
    """Label of the best trial's number; under noise with the observed value and the certainty."""
    certainty = None if study.by == "observed" else study.history.certainty
    if certainty is None:
        return f"best {study.metric}, trial {best.id}"
    observed = number_text(value_of(best), 5)
    sure = f"{100 * certainty:.0f} % sure"
    return f"expected {study.metric} of trial {best.id}, observed {observed}, {sure}"


def _partial_tile(study: Study, best: Trial) -> tuple[str, str]:
    """Tile of the best trial while none was trained in full."""
    where = f"best {study.metric} so far{at_step(study.history, best)}, trial {best.id}"
    return number_text(best.last_value or 0.0, 5), where


def _budget_tiles(study: Study) -> list[tuple[str, str]]:
    history = study.history
    if history.rungs is None:
        return [(f"{history.n_ended:,} / {study.budget:,}", "trials ended")]
    used, whole = n_trained(trial.first for trial in history.suggested), n_whole(history)
    saved = [(f"{1 - used / whole:.0%}", "of the epochs saved by rungs")] if whole else []
    return [
        *saved,
        (f"{history.spent:.1f} / {study.budget:,}", "full trainings' worth used"),
        (f"{history.n_suggested:,}", f"configs, {n_full(history)} of them trained in full"),
    ]


def _tiles(study: Study) -> list[tuple[str, str]]:
    counts = study.history.state_counts()
    tiles = [
        (study.state, "the sweep"),
        *_budget_tiles(study),
        (f"{counts['failed']:,}", "of them failed"),
        (f"{max(len(study.history.rounds) - 1, 0):,}", "rounds after the design"),
    ]
    if study.ranked:
        best = study.ranked[0]
        tiles.insert(0, (number_text(study.best_value, 5), _best_words(study, best)))
    elif study.history.best is not None:
        tiles.insert(0, _partial_tile(study, study.history.best))
    placed = placed_stays(study)
    if placed:
        down_s = covered(down_spans(study))
        span = max(stay.end for stay in placed)
        words = "from the first start to the last end"
        if down_s:
            words += f", {duration(down_s)} of it interrupted"
        tiles.append((duration(span), words))
        tiles.append((f"{busy_share(placed, down_s):.0%}", "of the slots' time spent training"))
    return tiles
