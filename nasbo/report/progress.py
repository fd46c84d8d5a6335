"""A running sweep's history comes in; a live display, or plain lines where there is no terminal."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from nasbo.history import History, Trial

_BARS = "▁▂▃▄▅▆▇█"


class Progress:
    """Shows rounds, trials, the best value and the time left.

    In a terminal it draws over itself; else it prints a line per trial that has ended.
    """

    def __init__(self, console: Console, budget: int) -> None:
        self.console, self.budget = console, budget
        self._began = time.monotonic()
        self._n_before: int | None = None
        self._printed: set[int] = set()
        self._noted = ""
        self._live = Live(console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Progress:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.console.is_terminal:
            self._live.stop()

    def __call__(self, history: History, note: str = "") -> None:
        """Show where the sweep stands, and a note that matters just now."""
        if self._n_before is None:
            self._n_before = history.n_ended
            self._printed = {t.id for t in history.trials if not t.is_open}
        self._print_ended(history)
        if self.console.is_terminal:
            self._live.update(self._draw(history, note))
        elif note.startswith("waiting") and note != self._noted:
            self.console.print(note, highlight=False)
        self._noted = note

    def tell(self, words: str) -> None:
        """Print something above the display."""
        self.console.print(Text(words), soft_wrap=True)

    def _print_ended(self, history: History) -> None:
        for trial in list(history.trials):
            if not trial.is_open and trial.id not in self._printed:
                self._printed.add(trial.id)
                self.console.print(Text(trial_line(history, trial, self.budget)))

    def _draw(self, history: History, note: str) -> Group:
        bar = ProgressBar(total=self.budget, completed=history.n_ended, width=40)
        head = Table.grid(padding=(0, 2))
        head.add_row(
            bar,
            f"{history.n_ended}/{self.budget} trials",
            f"round {max(len(history.rounds) - 1, 0)}",
            best_text(history),
            self._left(history),
        )
        running = Table.grid(padding=(0, 2))
        for trial in history.open_trials:
            if trial.state == "running":
                place = Text(history.subspace(trial).id)
                running.add_row(f"  trial {trial.id}", place, _progress(trial))
        curve = [value for value in history.best_so_far() if value == value]
        parts: list[RenderableType] = [head, running]
        parts.append(Text(f"  best so far {sparkline(curve)}", style="dim"))
        return Group(*parts, Text(f"  {note}", style="yellow")) if note else Group(*parts)

    def _left(self, history: History) -> str:
        n_done = history.n_ended - (self._n_before or 0)
        if n_done < 1:
            return "time left: ?"
        each = (time.monotonic() - self._began) / n_done
        return f"about {duration(each * max(self.budget - history.n_ended, 0))} left"


def trial_line(history: History, trial: Trial, budget: int) -> str:
    """One line for a trial that has ended."""
    took = ""
    if trial.ended_at and trial.started_at:
        took = f"  {duration(trial.ended_at - trial.started_at)}"
    what = f"{trial.value:.4f}" if trial.value is not None else f"failed: {trial.cause}"
    when = f"round {trial.round}" if trial.repeat_of is None else f"repeat of {trial.repeat_of}"
    place = f"{when}  {history.subspace(trial).id}  {trial.source}"
    message = f"  ({trial.message})" if trial.message else ""
    best = best_text(history)
    return f"trial {trial.id:>3} of {budget}  {place}  {what}{took}{message}  {best}"


def best_text(history: History) -> str:
    best = history.best
    return "best -" if best is None or best.value is None else f"best {best.value:.4f}"


def duration(seconds: float) -> str:
    """Seconds in words that fit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def sparkline(values: list[float], width: int = 40) -> str:
    """The last values as a row of bars."""
    values = values[-width:]
    if not values:
        return ""
    low, span = min(values), max(values) - min(values)
    top = len(_BARS) - 1
    return "".join(_BARS[round(top * (value - low) / span) if span else top] for value in values)


def _progress(trial: Trial) -> str:
    epochs = trial.metrics.get("epochs")
    step = f"step {trial.step}" + (f"/{int(epochs)}" if epochs else "")
    last = f"{trial.curve[-1][1]:.4f}" if trial.curve else ""
    return f"{step}  {last}"
