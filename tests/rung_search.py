"""Searches with rungs without training: synthetic curves, and folders of sweeps with a journal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from nasbo.history import History, Run, Rungs
from nasbo.history import events as ev
from nasbo.search import Driver, Schedule, Search, Verdict
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import create_folder
from nasbo.sweeps.settings import make_sweep

START, STEP_S = 1_700_000_000.0, 10.0

RUNGS = Rungs((2, 6, 18))


def value(history: History, number: int, step: int) -> float:
    """A curve that decreases with the steps; trial numbers that are smaller modulo 7 are better."""
    return (number * 5 % 7) + 10.0 / step


def make(
    budget: int = 4, kind: str = "round", rungs: Rungs | None = RUNGS, journal: Path | None = None
) -> Driver:
    search = Search("svm", method="random", journal=journal, rungs=rungs)
    return Driver(search, Schedule(kind, budget=budget))


def train(one: Driver, run: Run, curve=value) -> int:
    """Train a run to its target or its end; the step that it reached."""
    full = one.search.history.rungs.full if one.search.history.rungs else 18
    for step in range(run.resumed_from + 1, full + 1):
        now = curve(one.search.history, run.number, step)
        if math.isnan(now):
            one.on_end(run.number, now, step=step)
            return step
        if one.on_report(run.number, step, now, {}) is Verdict.PAUSE:
            one.on_end(run.number, now, error="paused", step=step)
            return step
    one.on_end(run.number, now, step=full)
    return full


def drive(one: Driver, n: int = 10_000, curve=value, slots: int = 1) -> list[tuple[int, int, int]]:
    """(run, from, to) of each training stretch."""
    done = []
    while len(done) < n and isinstance(run := one.next(slots), Run):
        done.append((run.number, run.resumed_from, train(one, run, curve)))
    return done


def falling(history: History, number: int, step: int) -> float:
    """A curve whose level depends on the trial; every eleventh diverges at its second step."""
    if number % 11 == 10 and step >= 2:
        return math.nan
    level = (number * 37 % 101) / 100
    return 0.2 + level + 2.0 / (step + 1) * (1 + 0.3 * (number % 3))


def make_rung_folder(
    folder: Path,
    budget: int = 8,
    n: int = 10_000,
    rungs: Rungs = RUNGS,
    curve: Any = falling,
    slots: int = 2,
    **settings: Any,
) -> Path:
    """A sweep with rungs of which ``n`` stretches were trained, at ten seconds per step."""
    given: dict[str, Any] = {
        "space": "svm",
        "trainer": "own:train",
        "method": "random",
        "mode": "min",
    }
    given |= {"metric": "loss", "trials": budget, "rungs": list(rungs.steps), "eta": rungs.eta}
    sweep = make_sweep({**given, **settings})
    create_folder(folder, sweep)
    goal = (sweep.space, sweep.method, sweep.mode, sweep.seed)
    file, notes = folder / JOURNAL_FILE, sweep.notes()
    with clock(), Search(*goal, journal=file, notes=notes, rungs=rungs) as search:
        drive(Driver(search, Schedule(budget=budget)), n, curve, slots)
    return folder


@contextmanager
def clock() -> Iterator[None]:
    """Clock that advances by ten seconds per event."""
    now = START

    def tick() -> float:
        nonlocal now
        now += STEP_S
        return now

    with patch.object(ev, "clock", SimpleNamespace(time=tick)):
        yield
