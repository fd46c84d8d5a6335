"""Choice of finalists, and the sweep that trains them as a fixed queue."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nasbo.errors import SweepError
from nasbo.history import By, History, Trial
from nasbo.methods import Suggestion
from nasbo.search import Search
from nasbo.storage.mirror import open_journal, open_mirror
from nasbo.sweeps.checks import compare_provenance
from nasbo.sweeps.folder import SETTINGS_FILE, SPACE_FILE, SweepFolder, create_folder
from nasbo.sweeps.rungs import at_step
from nasbo.sweeps.settings import Sweep, taken_by
from nasbo.sweeps.valueless import valueless_text
from nasbo.trainer import Trainer

FINAL_FOLDER = "final"
MAY_CHANGE = ("working_folder", *(declared.name for declared in taken_by("finalize")))
"""Settings of where and how fast finalists are trained, which may change on a resume."""
METHOD = "random"
"""Method named in the journal; it is never called."""


@dataclass(frozen=True)
class Wish:
    """Options of ``nasbo finalize``.

    Attributes:
        top: number of finalists.
        recipe: name of a recipe of the trainer; ``None`` for the trainer's default.
        seeds: number of trainings of each finalist.
        options: trainer options on top of the recipe.
        choose: result by which the best is chosen, ``validation`` (of the search) or ``test``.
        by: criterion that ranks the trials of the search.
        settings: of the sweep that trains them, such as ``slots``.
    """

    top: int = 3
    recipe: str | None = None
    seeds: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    choose: str = "validation"
    by: By = "estimate"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def command(self, name: str) -> str:
        """The command line with these options, for the model card."""
        words = ["nasbo", "finalize", name, "--top", str(self.top)]
        words += [] if self.recipe is None else ["--recipe", self.recipe]
        words += ["--seeds", str(self.seeds), "--choose", self.choose]
        words += [] if self.by == "estimate" else ["--by", self.by]
        for name, value in self.options.items():
            words += ["-o", f"{name}={json.dumps(value)}"]
        return shlex.join(words)


def choose_finalists(
    history: History, trainer: Trainer, top: int, by: By = "estimate"
) -> list[Trial]:
    """The best finished trials of different networks, best first.

    With rungs these may be too few: they are followed by the best of those trained furthest.
    """
    chosen: dict[str, Trial] = {}
    finished = [trial for trial in history.ranked(by) if trial.state == "finished"]
    for trial in [*finished, *_trained_in_part(history)]:
        if trial.twin is None:
            known = trainer.fingerprint
            chosen.setdefault(known(trial.config) if known else str(trial.id), trial)
    return list(chosen.values())[:top]


def _trained_in_part(history: History) -> list[Trial]:
    """Paused trials that have not failed since, the furthest first, then best first."""
    found = [
        (-trial.partial.step, -history.score(trial.partial.value), trial.id)
        for trial in history.suggested
        if trial.partial is not None and trial.state != "failed"
    ]
    return [history.trial(number) for *_, number in sorted(found)]


def partial_text(history: History, chosen: Sequence[Trial]) -> str:
    """Text about finalists that the search did not train in full; empty if there are none."""
    told = [
        f"trial {trial.id} ({trial.partial.value:.4f}{at_step(history, trial)})"
        for trial in chosen
        if trial.partial is not None
    ]
    few = "too few were trained in full; the furthest of the others follow: "
    return few + ", ".join(told) if told else ""


def open_search(folder: Path) -> SweepFolder:
    """The sweep to finalise; raises if it is running or has no result."""
    searched = SweepFolder(folder)
    if searched.is_running:
        raise SweepError(f"{searched.name}: is still running; finalize it when it has ended")
    if searched.history.best is None:
        why = valueless_text(searched.history)
        raise SweepError(f"{searched.name}: {why}, so there are no finalists")
    return searched


def final_folder(searched: SweepFolder) -> Path:
    """Folder of the finalists' sweep, in the bucket if the sweep is in one."""
    location = searched.location
    if location is None:
        return searched.path / FINAL_FOLDER
    return open_mirror(f"{location.url}/{FINAL_FOLDER}")


def final_sweep(folder: Path, sweep: Sweep, trainer: Trainer, wish: Wish) -> Sweep:
    """Settings of the finalists' sweep, without provenance of its data."""
    options = {**_options(sweep, trainer, wish), **wish.options}
    metric, mode = sweep.metric, sweep.mode
    if trainer.final_metric is not None:
        metric = trainer.final_metric(options)
        mode = "max" if (trainer.mode or mode) == "max" else "min"
    return replace(
        sweep,
        space=str((folder / SPACE_FILE).resolve()),
        trials=wish.top,
        method=METHOD,
        method_options={},
        trainer_options=options,
        schedule="round",
        batch=None,
        metric=metric,
        mode=mode,
        objectives=[],
        features="none",
        constraints=[],
        repeats=0,
        rungs="off",
        keep_checkpoints=0,
        stop_at=None,
        begin=[],
        warm_start=None,
        working_folder=os.getcwd(),
        provenance={},
        **{"time_limit_s": None, "report_timeout_s": None, **wish.settings},
    )


def _options(sweep: Sweep, trainer: Trainer, wish: Wish) -> dict[str, Any]:
    """The trainer's options for finalists; without ``final_options`` the
    sweep's own with the recipe.
    """
    if trainer.final_options is None:
        named = {} if wish.recipe is None else {"recipe": wish.recipe}
        return {**sweep.trainer_options, **named}
    try:
        return trainer.final_options(sweep.trainer_options, wish.recipe)
    except Exception as error:
        raise SweepError(f"options of {sweep.trainer}: {error}") from error


def prepare_final(
    final: Path, planned: Sweep, finalists: list[Trial], seeds: int
) -> tuple[SweepFolder, Sweep]:
    """Create the folder of the finalists' sweep with its queue, or open it to resume.

    Returns:
        The folder, and its settings with those of this run.

    Raises:
        SweepError: the folder has other finalists or options, or was started with other data.
    """
    if not (final / SETTINGS_FILE).exists():
        create_folder(final, replace(planned, trials=len(finalists)))
    held = SweepFolder(final)
    before = held.settings
    if before.trainer_options != planned.trainer_options:
        raise SweepError(
            f"{held.name} was begun with {_words(before.trainer_options)}, not with "
            f"{_words(planned.trainer_options)}: give the same, or remove {held.name}"
        )
    compare_provenance(final, before.provenance, planned.provenance)
    sweep = replace(before, **{name: getattr(planned, name) for name in MAY_CHANGE})
    journal, notes = open_journal(final), sweep.notes()
    goal = (METHOD, sweep.mode, sweep.seed)
    with Search(held.space, *goal, journal=journal, notes=notes) as search:
        _queue(search, finalists, seeds, held.name)
    return held, sweep


def _queue(search: Search, finalists: list[Trial], seeds: int, final: str) -> None:
    """Queue the finalists, and as many repeats of each as are missing."""
    if not search.history.trials:
        search.add_round([_suggestion(trial) for trial in finalists], 0.0)
    firsts = search.history.trials
    if [trial.config for trial in firsts] != [trial.config for trial in finalists]:
        raise SweepError(
            f"{final} holds other finalists than the sweep has now: give the same --top, "
            f"or remove {final}"
        )
    for trial in firsts:
        if trial.state != "failed":
            search.repeat(*[trial] * (seeds - 1 - len(trial.repeats)))


def _suggestion(trial: Trial) -> Suggestion:
    info = {"search_trial": trial.id, "search_value": trial.value, "search_values": trial.values}
    expected = {} if trial.estimate is None else {"search_estimate": trial.estimate.mean}
    if trial.partial is not None:
        expected |= {"search_last": trial.partial.value, "search_step": trial.partial.step}
    return Suggestion(trial.config, "design", info | expected)


def _words(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items()) or "no options"
