"""Finalisation of a sweep to `best/`: config, weights, ONNX file and model card."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml
from rich.console import Console

from nasbo.errors import SweepError
from nasbo.finish.card import chosen_how, describe_finalists, write_card
from nasbo.finish.finalist import Finalist
from nasbo.finish.finalists import (
    Wish,
    choose_finalists,
    final_folder,
    final_sweep,
    open_search,
    partial_text,
    prepare_final,
)
from nasbo.history import Objective, Run, json_safe
from nasbo.limits import numbers_of
from nasbo.search.repeats import is_complete
from nasbo.start import EXIT_CODES, Display, run_in_words
from nasbo.storage.mirror import push
from nasbo.storage.trial_files import TrialFiles
from nasbo.sweeps.checks import check_options, check_provenance, prepare_data, provenance_of
from nasbo.sweeps.folder import SETTINGS_FILE, SweepFolder, trial_name
from nasbo.sweeps.settings import Sweep
from nasbo.trainer import Trainer

BEST_FOLDER = "best"
CONFIG_FILE, CURVE_FILE = "architecture.yaml", "curve.csv"


def finalize(folder: Path, wish: Wish, console: Console) -> int:
    """Train a sweep's best configs in full, then write the best of them to ``best/``.

    Args:
        folder: of the sweep.
        wish: options.
        console: for progress messages.

    Returns:
        The exit code: that of the finalists' sweep if it did not finish.
    """
    searched = open_search(folder)
    trainer = _trainer(searched)
    chosen = choose_finalists(searched.history, trainer, wish.top, wish.by)
    planned = final_sweep(folder, searched.settings, trainer, wish)
    check_options(planned, trainer)
    final_path = final_folder(searched)
    is_new = not (final_path / SETTINGS_FILE).exists()
    if is_new:
        prepare_data(planned, console)
    check_provenance(folder, searched.settings, console)
    planned = replace(planned, provenance=provenance_of(planned, console))
    final, sweep = prepare_final(final_path, planned, chosen, wish.seeds)
    n_runs = max(len(trial.runs) for trial in final.history.trials)
    console.print(f"{len(chosen)} finalists, trained {n_runs} times each, in {final.name}")
    if told := partial_text(searched.history, chosen):
        console.print(told, highlight=False, soft_wrap=True)
    if not is_complete(final.history, len(chosen)):
        if not is_new:
            prepare_data(sweep, console)
        code = run_in_words(final, sweep, None, Display(console))
        if not is_complete(final.refresh().history, len(chosen)):
            console.print(
                f"not finished; continue with: {wish.command(searched.name)}", soft_wrap=True
            )
            return code or EXIT_CODES["interrupted"]
    finalists = _export_all(final, trainer, console)
    chosen_by = _decider(searched.settings, planned, wish)
    best = _pick(finalists, planned, chosen_by)
    wish = replace(wish, seeds=max(n_runs, wish.seeds))
    words = {"command": wish.command(searched.name), "choose": wish.choose, "chosen_by": chosen_by}
    facts = _facts(searched, sweep, console) | words
    _write_best(folder, final, best, finalists, facts)
    console.print(describe_finalists(finalists, best, sweep), highlight=False)
    told = f"finalist {best.rank} was chosen {chosen_how(best, finalists, facts)}"
    console.print(told, highlight=False, soft_wrap=True)
    for name in dict.fromkeys((str(folder), searched.name)):
        console.print(f"best:        {name}/{BEST_FOLDER}", highlight=False, soft_wrap=True)
    return 0


def _trainer(searched: SweepFolder) -> Trainer:
    try:
        return searched.trainer
    except SweepError as error:
        needed = f"{searched.name} needs the trainer {searched.settings.trainer}"
        raise SweepError(f"{error}; {needed}") from error


def _export_all(final: SweepFolder, trainer: Trainer, console: Console) -> list[Finalist]:
    """All finalists that finished, exported if the trainer can do so."""
    if trainer.export is None:
        console.print(
            f"{final.settings.trainer} offers no export(config, trial_folder, folder, options): "
            "best/ will hold the config and its values, no weights",
            highlight=False,
        )
    found = []
    for rank, trial in enumerate(final.history.trials, start=1):
        trainings = [run for run in trial.runs if run.state == "finished"]
        if not trainings:
            console.print(f"finalist {rank} is left out: {trial.cause} {trial.message}")
            continue
        finalist = Finalist(rank, trial, trainings, {})
        facts = _export(final, finalist, trainer)
        found.append(replace(finalist, facts=facts))
    if not found:
        raise SweepError(f"{final.name}: no finalist could be trained")
    return found


def _export(final: SweepFolder, finalist: Finalist, trainer: Trainer) -> dict[str, Any]:
    """Export one finalist to its own folder; returns the facts about it."""
    target, config = _export_folder(final, finalist.rank), finalist.trial.config
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    text = yaml.safe_dump({"config": config}, sort_keys=False)
    (target / CONFIG_FILE).write_text(text, encoding="utf-8")
    options = final.settings.trainer_options
    facts: Mapping[str, Any]
    if trainer.export is not None:
        source = _trained_folder(final, finalist.trainings[0].number)
        facts = trainer.export(config, source, target, options)
    else:
        facts = numbers_of(trainer.describe(config, options))
    _write_curve(target / CURVE_FILE, finalist.trainings[0])
    return dict(json_safe(facts))


def _trained_folder(final: SweepFolder, number: int) -> Path:
    """The files of a training, downloaded from the bucket if necessary."""
    folder, location = final.trial_folder(number), final.location
    if location is not None:
        try:
            TrialFiles(location, trial_name(number), folder)
        except OSError as error:
            raise SweepError(f"{location.url}: cannot be read: {error}") from error
    return folder


def _write_curve(file: Path, trained: Run) -> None:
    """Write the reported numbers of a training as CSV, one row per step."""
    # A restart reports again: the last report of a step counts.
    rows = {one.step: numbers_of(one.metrics) for one in trained.measurements}
    found = dict.fromkeys(name for row in rows.values() for name in row)
    names = [name for name in found if not name.startswith("nasbo_")]  # the sweep's own
    with file.open("w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["step", *names])
        writer.writerows([step, *map(row.get, names)] for step, row in sorted(rows.items()))


def _export_folder(final: SweepFolder, rank: int) -> Path:
    return final.path / "exports" / f"finalist-{rank}"


def _decider(searched: Sweep, final: Sweep, wish: Wish) -> str:
    """Criterion of the best finalist: ``means``, ``search`` or ``test``.

    Final trainings with the metric of the search are more informative than single values of the
    search. A test set decides only on request.
    """
    if (final.metric, final.mode) == (searched.metric, searched.mode):
        return "means"
    return "search" if wish.choose == "validation" else "test"


def _pick(finalists: list[Finalist], final: Sweep, chosen_by: str) -> Finalist:
    """The first finalist of the search, or the one with the best mean of its final trainings."""
    if chosen_by == "search":
        return finalists[0]
    objective = Objective(mode=final.mode)
    return max(finalists, key=lambda finalist: objective.score(fmean(finalist.values)))


def _facts(searched: SweepFolder, sweep: Sweep, console: Console) -> dict[str, Any]:
    """Facts for the card besides those of the finalists."""
    before = searched.settings
    return {
        "trainer": sweep.trainer,
        "options": sweep.trainer_options,
        "metric": sweep.metric or "value",
        "search_metric": searched.metric,
        "search_options": before.trainer_options,
        "method": before.method,
        "n_trials": searched.history.n_ended,
        "provenance": provenance_of(sweep, console),
        "search_provenance": before.provenance,
        "versions": sweep.notes()["versions"],
        "mode": sweep.mode,
    }


def _write_best(
    folder: Path,
    final: SweepFolder,
    best: Finalist,
    finalists: list[Finalist],
    facts: Mapping[str, Any],
) -> None:
    """Write ``best.partial/``, rename it to ``best/``, and upload it to the bucket."""
    target, fresh = folder / BEST_FOLDER, folder / f"{BEST_FOLDER}.partial"
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(_export_folder(final, best.rank), fresh)
    write_card(fresh, target, best, finalists, facts)
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    files = [path for path in target.rglob("*") if path.is_file()]
    push(folder, [str(path.relative_to(folder)) for path in files])
