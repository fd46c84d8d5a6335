"""Live status table of a sweep in the terminal."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from nasbo.history import History, Run, View
from nasbo.history.events import Decoder
from nasbo.history.journal import JournalFollower
from nasbo.report.axes import is_finite
from nasbo.report.progress import (
    MAX_RUNNING,
    RECENT,
    downtime,
    duration,
    head_row,
    left_text,
    name_text,
    sparkline,
    step_text,
    value_text,
)
from nasbo.report.rungs import rung_table, waiting_table
from nasbo.storage.mirror import pull
from nasbo.sweeps.folder import SweepFolder
from nasbo.sweeps.rungs import rung_rows, waiting

MAX_SUBSPACES = 16
MAX_PAUSED = 8
_WIDTH = 60


class SweepFollower(SweepFolder):
    """A sweep that another process runs; only new lines of its journal are read."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__(folder)
        self._journal = JournalFollower(self.journal_file)
        self._begin()

    def _begin(self) -> None:
        self.history, self._decode = History(self.space, self.settings.mode), Decoder()

    def refresh(self) -> SweepFollower:
        """Apply the events since the last call."""
        pull(self.path)
        lines, is_new = self._journal.read()
        if is_new:
            self._begin()
        for line in lines:
            self.history.apply(self._decode(line))
        return self


@dataclass
class Tally:
    """Counts and best value of a subspace, which is a row of the table."""

    index: int
    n_trials: int = 0
    n_running: int = 0
    n_failed: int = 0
    best: float | None = None
    ei_share: float | None = None


def tallies(history: View, is_running: bool = True) -> list[Tally]:
    """Rows of the table by subspace, ordered by number of trials, then by best value.

    Args:
        history: of the sweep.
        is_running: whether the sweep runs; if not, its open trials do not run.
    """
    found: dict[int, Tally] = {}
    for trial in history.trials:
        tally = found.setdefault(trial.subspace, Tally(trial.subspace))
        tally.n_trials += 1
        tally.n_running += is_running and sum(run.state == "running" for run in trial.runs)
        tally.n_failed += trial.state == "failed"
        if trial.value is not None and history.objectives.is_better(trial.value, tally.best):
            tally.best = trial.value
    for index, share in ei_shares(history).items():
        found[index].ei_share = share
    return sorted(found.values(), key=lambda tally: (-tally.n_trials, *_rank(history, tally)))


def _rank(history: View, tally: Tally) -> tuple[float, int]:
    return (math.inf if tally.best is None else -history.score(tally.best), tally.index)


def ei_shares(history: View) -> dict[int, float]:
    """Share of each subspace in the expected improvement of the last round with a model."""
    known = (t.round for t in reversed(history.trials) if is_finite(t.info.get("log_ei")))
    last = next(known, None)
    if last is None:
        return {}
    scores: dict[int, float] = {}
    for trial in reversed(history.trials):
        if trial.round < last and trial.source != "observed":
            break
        score = trial.info.get("log_ei")
        if trial.round == last and is_finite(score):
            scores[trial.subspace] = max(scores.get(trial.subspace, -math.inf), score)
    if not scores:
        return {}
    top = max(scores.values())
    weights = {index: math.exp(score - top) for index, score in scores.items()}
    total = sum(weights.values())
    return {index: weight / total for index, weight in weights.items()}


def recent_busy_share(history: View, now: float) -> float | None:
    """Share of the slots' time that was spent on trials, over the last ended attempts.

    The number of slots is the largest number of concurrent attempts in that time. Time without
    a driver does not count.
    """
    runs = history.runs[-4 * RECENT :]
    ends = sorted(one.end for r in runs for one in r.attempts if one.end is not None)[-RECENT:]
    if not ends:
        return None
    spans = [span for run in runs for span in run.spans(now) if span[1] >= ends[0]]
    since, until = min(start for start, _ in spans), max(end for _, end in spans)
    time_s = until - since - downtime(history, since, until)
    worked = sum(end - start for start, end in spans)
    return min(worked / (time_s * _most_at_once(spans)), 1.0) if time_s > 0 else None


def _most_at_once(spans: list[tuple[float, float]]) -> int:
    """Largest number of concurrent spans; an end counts before a start at the same time."""
    steps = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    level = most = 0
    for _, step in steps:
        level += step
        most = max(most, level)
    return max(most, 1)


def draw_status(follower: SweepFollower, now: float | None = None) -> RenderableType:
    """Status of a sweep for the terminal."""
    now = time.time() if now is None else now
    history, state = follower.history, follower.state
    parts: list[RenderableType] = [_head(follower, state, now), _subspace_table(history, state)]
    running = [r for r in history.open_runs if r.state == "running" and state == "running"]
    if running:
        parts.append(_running_table(history, running, now))
    curve = [value for value in history.best_so_far() if value == value]
    parts.append(Text(f"best so far {sparkline(curve, _WIDTH)}", style="dim"))
    causes = ", ".join(f"{cause} {n}" for cause, n in history.cause_counts().items())
    if causes:
        parts.append(Text(f"failed: {causes}", style="red"))
    return Group(*parts, *_paused(history))


def _paused(history: View) -> list[RenderableType]:
    """The rungs and paused trials; without rungs the number of paused ones."""
    if history.rungs is not None:
        found = waiting(history)
        tables: list[RenderableType] = [Text(), rung_table(rung_rows(history))]
        return [*tables, Text(), waiting_table(history, found, MAX_PAUSED)] if found else tables
    n_paused = history.state_counts()["paused"]
    return [Text(f"paused: {n_paused}", style="dim")] if n_paused else []


def _head(follower: SweepFollower, state: str, now: float) -> RenderableType:
    history, budget = follower.history, follower.budget
    share = recent_busy_share(history, now if state == "running" else history.last_time)
    after = [] if share is None else [f"busy {share:.0%}"]
    if state == "running":
        after += left_text(history, budget)
    title = Text(f"{follower.name}: {follower.settings.method}", style="bold")
    return Group(title, head_row(history, budget, [state], after))


def _subspace_table(history: View, state: str) -> Table:
    table = Table(box=None, header_style="bold")
    table.add_column("subspace")
    for name in ("trials", "running", "failed", "best", "EI share"):
        table.add_column(name, justify="right", no_wrap=True)
    rows = tallies(history, state == "running")
    for tally in rows[:MAX_SUBSPACES]:
        name = history.space.subspace(tally.index).id
        best = "-" if tally.best is None else value_text(tally.best)
        share = "-" if tally.ei_share is None else f"{tally.ei_share:.0%}"
        counts = (str(n) for n in (tally.n_trials, tally.n_running, tally.n_failed))
        table.add_row(name_text(name), *counts, best, share)
    if len(rows) > MAX_SUBSPACES:
        table.add_row(Text(f"and {len(rows) - MAX_SUBSPACES:,} more", "dim"))
    return table


def _running_table(history: View, running: list[Run], now: float) -> Table:
    table = Table(box=None, header_style="bold")
    for name in ("running", "subspace", "step", "value", "since"):
        table.add_column(name, no_wrap=name != "subspace")
    for run in running[:MAX_RUNNING]:
        value = value_text(run.curve[-1][1]) if run.curve else "-"
        since = "-" if run.current is None else duration(now - run.current.start)
        subspace = name_text(history.subspace(history.trial(run.number)).id)
        table.add_row(f"trial {run.number}", subspace, step_text(run), value, since)
    if len(running) > MAX_RUNNING:
        table.add_row(Text(f"and {len(running) - MAX_RUNNING:,} more", "dim"))
    return table


def watch(
    folder: Path,
    console: Console,
    interval_s: float = 1.0,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Show the status until the sweep has finished or Ctrl-C; only once without a terminal."""
    follower = SweepFollower(folder)
    follower.refresh()
    if not console.is_terminal:
        console.print(draw_status(follower))
        return
    with Live(draw_status(follower), console=console, auto_refresh=False) as live:
        try:
            while follower.state != "finished":
                sleep(interval_s)
                follower.refresh()
                live.update(draw_status(follower), refresh=True)
        except KeyboardInterrupt:
            return
