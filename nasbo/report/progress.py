"""Live display of a running sweep, or plain lines without a terminal."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from statistics import fmean

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from nasbo.history import Run, Trial, View
from nasbo.report.axes import is_finite
from nasbo.search.rungs import stretch
from nasbo.sweeps.rungs import at_step, step_words
from nasbo.sweeps.spending import budget_text, n_trained, spent_until

_BARS = "▁▂▃▄▅▆▇█"
MAX_RUNNING = 16
RECENT = 50
"""Number of last trials from which the time left is estimated."""


class Progress:
    """Shows rounds, trials, the best value and the time left.

    In a terminal it redraws itself; otherwise it prints one line per ended trial.
    """

    def __init__(self, console: Console, budget: int) -> None:
        self.console, self.budget = console, budget
        self._printed: set[tuple[int, float]] | None = None
        self._noted = ""
        waiting = _Waiting()
        self._live = Live(waiting, console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Progress:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self._live.stop()

    def __call__(self, history: View, note: str = "") -> None:
        """Show the state of the sweep, with a note on what it is waiting for, if anything."""
        if self._printed is None:
            self._printed = {_end_of(run) for run in history.runs if not run.is_open}
        self._print_ended(history, self._printed)
        if self.console.is_terminal:
            self._live.update(self._draw(history, note))
        elif note.startswith("waiting") and note != self._noted:
            self.console.print(note, highlight=False)
        self._noted = note

    def tell(self, words: str) -> None:
        """Print text above the display."""
        self.console.print(Text(words), soft_wrap=True)

    def _print_ended(self, history: View, printed: set[tuple[int, float]]) -> None:
        runs = [run for run in history.runs if not run.is_open]
        runs.sort(key=lambda run: (run.ended_at or 0.0, run.number))
        n_ended = sum(_end_of(run) in printed and not run.is_repeat for run in runs)
        for run in runs:
            if _end_of(run) not in printed:
                printed.add(_end_of(run))
                n_ended += not run.is_repeat
                line = run_line(history, run, n_ended, self.budget)
                self.console.print(Text(line), soft_wrap=True)

    def _draw(self, history: View, note: str) -> Group:
        running = Table.grid(padding=(0, 2))
        runs = [run for run in history.open_runs if run.state == "running"]
        for run in runs[:MAX_RUNNING]:
            subspace = name_text(history.subspace(history.trial(run.number)).id)
            running.add_row(f"  trial {run.number}", subspace, _progress(run))
        if len(runs) > MAX_RUNNING:
            running.add_row(Text(f"  and {len(runs) - MAX_RUNNING:,} more", "dim"))
        curve = [value for value in history.best_so_far() if value == value]
        left = left_text(history, self.budget)
        parts: list[RenderableType] = [head_row(history, self.budget, after=left), running]
        parts.append(Text(f"  best so far {sparkline(curve)}", style="dim"))
        return Group(*parts, Text(f"  {note}", style="yellow")) if note else Group(*parts)


class _Waiting:
    """Display before the first update."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __rich__(self) -> Text:
        return Text(f"  waiting for Ray, {duration(time.monotonic() - self._began)}", "dim")


def head_row(
    history: View, budget: int, before: Sequence[str] = (), after: Sequence[str] = ()
) -> RenderableType:
    """One line with a progress bar, which shrinks in narrow terminals, and the state of the sweep.

    With rungs, the used budget is on a second line.

    Args:
        history: of the sweep.
        budget: total number of trials.
        before: texts before the bar.
        after: texts at the end.
    """
    words = [
        *([f"{history.n_ended}/{budget} trials"] if history.rungs is None else []),
        f"round {max(len(history.rounds) - 1, 0)}",
        best_text(history),
        *after,
    ]
    grid = Table.grid(padding=(0, 2))
    for _ in before:
        grid.add_column(no_wrap=True)
    grid.add_column(min_width=4, max_width=40)
    for _ in words:
        grid.add_column(no_wrap=True)
    bar = ProgressBar(total=budget, completed=history.spent)
    grid.add_row(*(Text(word, "bold") for word in before), bar, *map(Text, words))
    return grid if history.rungs is None else Group(grid, Text(budget_text(history, budget)))


def name_text(name: str) -> Text:
    """A name that is truncated in narrow terminals, so that a row stays on one line."""
    return Text(name, no_wrap=True, overflow="ellipsis")


def left_text(history: View, budget: int) -> list[str]:
    """Text about the time left, if known."""
    left = time_left(history, budget)
    return [] if left is None else [f"about {duration(left)} left"]


def time_left(history: View, budget: int) -> float | None:
    """Estimated seconds until the budget is used, from the pace of the last trials.

    Only time in which a trial ran or the method decided counts, so that an interruption overnight
    has no effect. With rungs it is the pace of steps.
    """
    if history.rungs is not None:
        return _time_left_by_steps(history, budget, history.rungs.full)
    ended = [trial for trial in history.suggested if trial.ended_at]
    recent = sorted(ended, key=lambda trial: trial.ended_at or 0.0)[-RECENT:]
    spans = [span for trial in recent for span in trial.first.spans(trial.ended_at or 0.0)]
    left = budget - len(ended)
    if not spans or left <= 0:
        return None
    numbers = {trial.round for trial in recent}
    decisions = sum(one.seconds for one in history.rounds if one.number in numbers)
    return left * (covered(spans) + decisions) / len(recent)


def _time_left_by_steps(history: View, budget: int, full: int) -> float | None:
    """Estimate from the mean pace of steps so far, as new configs are shorter than promotions."""
    n_steps = n_trained(history.runs)
    left = (budget - history.spent) * full + sum(_n_ahead(history, r) for r in history.open_runs)
    if not n_steps or left <= 0:
        return None
    spans = (span for run in history.runs for span in run.spans(history.last_time))
    decisions = sum(one.seconds for one in history.rounds)
    return left * (covered(spans) + decisions) / n_steps


def _n_ahead(history: View, run: Run) -> int:
    """Steps of an open run's present stretch that are not trained yet; all
    of them are in the budget.
    """
    return stretch(history, run) - max(run.step - run.resumed_from, 0)


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Total time that the spans cover."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(end - max(start, until), 0.0)
        until = max(until, end)
    return total


def downtime(history: View, since: float, until: float) -> float:
    """Seconds between two times without a driver."""
    return covered((max(start, since), min(end, until)) for start, end in history.gaps)


def run_line(history: View, run: Run, n_ended: int, budget: int) -> str:
    """One line for an ended run, the ``n_ended``-th trial of the budget.

    With rungs it starts with the budget that was used by then, in full trainings.
    """
    trial = history.trial(run.number)
    took = f"  {duration(run.seconds)}" if run.attempts else ""
    what = value_text(run.value) if run.value is not None else f"failed: {run.cause}"
    if run.is_paused:
        what = f"paused at step {run.step}"
        if history.rungs is not None and run.value is not None:
            what = f"{value_text(run.value)}, {what} of {history.rungs.full}"
    name, when, source = f"trial {run.number}", f"round {trial.round}", str(trial.source)
    if "search_trial" in trial.info:
        name, when = (
            f"finalist {trial.id + 1} (trial {trial.info['search_trial']})",
            _seed(run, trial),
        )
        source = "final"
    elif run.is_repeat:
        when, source = f"repeat of {trial.id}", "repeat"
    origin = f"{when}  {history.subspace(trial).id}  {source}"
    message = f"  ({run.message})" if run.message else ""
    count = f"{n_ended:>{len(str(budget))}} of {budget}"
    if history.rungs is not None:
        spent = spent_until(history, run.ended_at or math.inf)
        count = f"{spent:>{len(str(budget)) + 2}.1f} of {budget}"
    return f"{count}  {name}  {origin}  {what}{took}{message}  {_best_by(history, run)}"


def _seed(run: Run, trial: Trial) -> str:
    """Which of its trainings with different seeds a run is."""
    place = [one.number for one in trial.runs].index(run.number) + 1
    return f"seed {place} of {len(trial.runs)}"


def _end_of(run: Run) -> tuple[int, float]:
    """Key of one ending of a run, which may pause several times."""
    return run.number, run.ended_at or 0.0


def _best_by(history: View, run: Run) -> str:
    """The best mean of the runs that had ended at the time of this run's end.

    As long as no trial had been trained in full, it is the best of those trained furthest.
    """
    time, means = run.ended_at or 0.0, []
    for trial in history.trials:
        ended = (one for one in trial.runs if (one.ended_at or math.inf) <= time)
        values = [one.value for one in ended if one.state == "finished" and one.value is not None]
        means += [fmean(values)] if values and trial.is_comparable else []
    best = max(means, key=history.score, default=None)
    return _best_partial_by(history, time) if best is None else f"best {value_text(best)}"


def _best_partial_by(history: View, time: float) -> str:
    """The best value of the pauses until a time that are at the highest step."""
    pauses = [
        pause
        for trial in history.suggested
        for pause in trial.first.pauses.values()
        if _reached_at(trial.first, pause.step) <= time
    ]
    if not pauses:
        return "best -"
    best = max(pauses, key=lambda pause: (pause.step, history.score(pause.value)))
    return f"best {value_text(best.value)}{step_words(history, best.step)}"


def _reached_at(run: Run, step: int) -> float:
    """Time of the first report of a step; the run's end if it reported none."""
    times = (one.time for one in run.measurements if one.step >= step)
    return next(times, run.ended_at or math.inf)


def best_text(history: View) -> str:
    """The best value; under noise the estimate of the best trial, and its certainty."""
    best, certainty = history.best, history.certainty
    if best is None or best.last_value is None or best.expected is None:
        return "best -"
    observed = value_text(best.last_value) + at_step(history, best)
    if certainty is None:
        return f"best {observed}"
    told = f"{value_text(best.expected)} expected (observed {observed})"
    return f"best {told}, {100 * certainty:.0f} % sure"


def value_text(value: float) -> str:
    """A value with four decimals, or in scientific notation if very small or large."""
    return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e6 else f"{value:.4g}"


def duration(seconds: float) -> str:
    """A duration as short text."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def sparkline(values: list[float], width: int = 40) -> str:
    """Values as a row of bars, thinned over their whole length."""
    if len(values) > width:
        values = [values[index * (len(values) - 1) // (width - 1)] for index in range(width)]
    if not values:
        return ""
    low, span = min(values), max(values) - min(values)
    top = len(_BARS) - 1
    return "".join(_BARS[round(top * (value - low) / span) if span else top] for value in values)


def _progress(run: Run) -> str:
    last = value_text(run.curve[-1][1]) if run.curve else ""
    return f"step {step_text(run)}  {last}"


def step_text(run: Run) -> str:
    """The step of a run, and the total if the trainer reports it."""
    epochs = run.metrics.get("epochs")
    return f"{run.step}" + (f"/{int(epochs)}" if epochs and is_finite(epochs) else "")
