"""Folders of sweeps with all that a tracker must show, without Ray, and parts of their journals."""

from __future__ import annotations

import shutil
from pathlib import Path

from nasbo.finish.finalists import Wish, choose_finalists, final_folder, final_sweep, prepare_final
from nasbo.search import Search
from nasbo.storage.mirror import JOURNAL_FILE, open_journal
from nasbo.sweeps.folder import SweepFolder, create_folder
from nasbo.sweeps.settings import Sweep
from nasbo.trainer import load_trainer
from tests.events import failed, finished, reported, requeued, started

TRAINER = "tests.finish.able:train"
METRIC = "loss"


def make_mixed(folder: Path) -> Path:
    """Two finished trials with three reports each, one that repeats steps, a failure, a twin.

    The best trial is repeated twice; one more trial runs, another one waits.
    """
    sweep = Sweep(
        space="simulation", trainer=TRAINER, method="random", trials=8, metric=METRIC, slots=2,
        trainer_options={"a": 1, "b": {"c": [1, 2]}},
    )  # fmt: skip
    create_folder(folder, sweep)
    journal = open_journal(folder)
    with Search("simulation", "random", journal=journal, notes=sweep.notes()) as search:
        one, two, again, bad, twin, running, _waiting = search.open_round(7)
        for number in (one.id, two.id):
            _play(search, number, [(step, float(number + 4 - step)) for step in (1, 2, 3)])
        search.record(started(again.id), reported(again.id, 1, 9.0), reported(again.id, 2, 8.0))
        search.record(requeued(again.id, "killed"), started(again.id))
        search.record(reported(again.id, 2, 7.5), reported(again.id, 3, 7.0))
        search.record(finished(again.id, 7.0, step=3))
        search.record(started(bad.id), failed(bad.id, "crashed", message="a bug of the user"))
        search.answer(twin, search.history.trial(one.id))
        first, second = search.repeat(search.history.trial(one.id), search.history.trial(one.id))
        _play(search, first.number, [(3, 1.5)])
        _play(search, second.number, [(3, 1.8)])
        search.record(started(running.id), reported(running.id, 1, 5.0, metrics={"size": 3}))
    return folder


def _play(search: Search, number: int, curve: list[tuple[int, float]]) -> None:
    search.record(started(number))
    for step, value in curve:
        metrics = {METRIC: value, "epochs": step, "note": "text", "ok": True, "nasbo_own": 1}
        search.record(reported(number, step, value, metrics=metrics))
    search.record(finished(number, value, step=step, metrics=metrics))


def add_finalists(folder: Path) -> Path:
    """Two finalists of a sweep, of which the first has ended."""
    held, trainer = SweepFolder(folder), load_trainer(TRAINER)
    chosen = choose_finalists(held.history, trainer, 2)
    planned = final_sweep(folder, held.settings, trainer, Wish(2))
    final, _ = prepare_final(final_folder(held), planned, chosen, 1)
    with Search("simulation", "random", journal=open_journal(final.path)) as search:
        _play(search, 0, [(1, 0.25), (2, 0.125)])
    return final.path


def cut(folder: Path, target: Path, n_lines: int) -> Path:
    """A folder as it was when its journal had so many lines."""
    if not target.exists():
        shutil.copytree(folder, target)
    lines = (folder / JOURNAL_FILE).read_bytes().splitlines(keepends=True)
    (target / JOURNAL_FILE).write_bytes(b"".join(lines[:n_lines]))
    return target
