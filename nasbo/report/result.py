"""Result of a run for the terminal: the best trial and its network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nasbo.history import Trial, View
from nasbo.sweeps.pick import front_rows
from nasbo.sweeps.rungs import at_step
from nasbo.trainer import Trainer


def describe_best(history: View, trial: Trial, trainer: Trainer | None) -> RenderableType:
    """The best config and, if the trainer has a summary, its network."""
    value = "-" if trial.last_value is None else f"{trial.last_value:.5g}"
    value += at_step(history, trial)
    if len(trial.values) > 1:
        value += f", the mean of {' '.join(f'{one:.5g}' for one in trial.values)}"
    if "origin" in trial.info:
        value += f", taken over from {trial.info['origin']}"
    told = f"value {value}"
    if trial.estimate is not None:
        mean, sd = trial.estimate
        told = f"expected {mean:.5g} ± {sd:.2g}, observed {value}"
    title = f"best: {_name(trial)}, {told} ({history.subspace(trial).id})"
    table = Table(show_header=False, box=None)
    for name, setting in trial.config.items():
        table.add_row(Text(name, "cyan"), Text(_text(setting)))
    parts: list[RenderableType] = [_line(title), table]
    if trainer is not None and trainer.summary is not None:
        parts += _network(history, trial, trainer)
    return Group(*parts)


def _name(trial: Trial) -> str:
    """A trial, or a finalist with its trial in the search."""
    if "search_trial" not in trial.info:
        return f"trial {trial.id}"
    return f"finalist {trial.id + 1} (trial {trial.info['search_trial']})"


def _line(text: str) -> Text:
    """Text that terminals wrap, not Rich; to be printed with ``crop=False``."""
    return Text(text, no_wrap=True, overflow="ignore")


def describe_front(history: View) -> RenderableType:
    """A table of the front, with the subspace of each trial."""
    rows, volume = front_rows(history), history.hypervolume
    told = "" if volume is None else f", hypervolume {volume:.5g}"
    trials = "1 trial" if len(rows) == 1 else f"{len(rows)} trials"
    table = Table(box=None, header_style="bold")
    for name in ("trial", *map(str, history.objectives), "subspace"):
        table.add_column(Text(name), justify="left" if name == "subspace" else "right")
    for trial, values in rows:
        cells = [str(trial.id), *(f"{value:,.5g}" for value in values), history.subspace(trial).id]
        table.add_row(*map(Text, cells))
    return Group(Text(f"front: {trials}{told}"), table)


def _network(history: View, trial: Trial, trainer: Trainer) -> list[RenderableType]:
    """The trainer's summary of the network, or the reason why it fails."""
    options = history.notes.get("trainer_options") or {}
    try:
        return _describe_network(trainer.describe(trial.config, options))
    except Exception as error:  # a user's code, whose data may be on the workers only
        reason = (str(error).splitlines() or [""])[0]
        return [_line(f"network: not known here ({type(error).__name__}: {reason})")]


def _describe_network(summary: Mapping[str, Any]) -> list[RenderableType]:
    rows = [row for row in summary.get("rows", []) if isinstance(row, Mapping)]
    numbers = [f"{key}: {_text(v)}" for key, v in summary.items() if isinstance(v, int | float)]
    parts: list[RenderableType] = [_line("network: " + ", ".join(numbers))] if numbers else []
    if rows:
        # Rows may differ in their columns; the fullest one has them in their order.
        names = dict.fromkeys(name for row in sorted(rows, key=len, reverse=True) for name in row)
        table = Table(box=None, header_style="bold")
        for name in names:
            table.add_column(Text(str(name)))
        for row in rows:
            table.add_row(*(Text(_text(row[name]) if name in row else "") for name in names))
        parts.append(table)
    return parts


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join("-" if item is None else _text(item) for item in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.5g}"
