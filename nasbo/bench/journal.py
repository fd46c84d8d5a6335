"""Measurement of the journal: write time per trial, and time to open."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from nasbo.history import Ending
from nasbo.history.events import Ended
from nasbo.search import Search


@dataclass(frozen=True)
class JournalCost:
    """Cost of the journal."""

    n_trials: int
    per_trial_ms: float
    open_s: float
    size_mb: float


def measure_journal(folder: Path, n_trials: int = 10_000, n_timed: int = 300) -> JournalCost:
    """Time the writing and reading of a journal on the NAS space.

    Args:
        folder: where the journal is written; its disk is what is measured.
        n_trials: number of trials in the journal that is opened.
        n_timed: number of trials whose writes are timed: suggested, started and finished, with
            fsync.
    """
    path = folder / "bench.jsonl"
    path.unlink(missing_ok=True)
    with Search("nas_cifar10", method="random", journal=path) as search:
        each = [_one_trial(search) for _ in range(n_timed)]
        while len(search.history.trials) < n_trials:
            trials = search.open_round(500)
            search.record(*(Ended(run=t.id, ending=Ending.FINISHED, value=0.5) for t in trials))
    begin = time.perf_counter()
    with Search("nas_cifar10", method="random", journal=path) as search:
        open_s = time.perf_counter() - begin
        n_found = len(search.history.trials)
    size_mb = path.stat().st_size / 1e6
    path.unlink()
    path.with_name(f"{path.name}.lock").unlink()
    return JournalCost(n_found, 1e3 * statistics.median(each), open_s, size_mb)


def _one_trial(search: Search) -> float:
    """Seconds that the journal took for one trial: three writes with fsync."""
    journal = search.journal
    assert journal is not None
    spent = 0.0
    append = journal.append

    def timed(*events: object, sync: bool = True) -> None:
        nonlocal spent
        begin = time.perf_counter()
        append(*events, sync=sync)  # type: ignore[arg-type]
        spent += time.perf_counter() - begin

    journal.append = timed  # type: ignore[method-assign]
    try:
        for trial in search.ask(1):
            search.tell(trial, 0.5)
    finally:
        journal.append = append  # type: ignore[method-assign]
    return spent
