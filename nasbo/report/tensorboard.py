"""TensorBoard log of a sweep: curves, hyperparameters and attention maps.

A trainer may write its own event files in its trials' folders. Curves of trials without them are
written here, from the journal. ``tensorboard --logdir DIR`` shows all of them.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from nasbo.errors import NasboError
from nasbo.history import Run, Trial, View
from nasbo.report.attention import AttentionMap, NoAttentionError, attention_maps
from nasbo.report.curves import clean_curve
from nasbo.report.study import is_valued, last_text
from nasbo.search.repeats import is_complete
from nasbo.sweeps.folder import trial_folder, trial_name
from nasbo.sweeps.spending import best_course

TENSORBOARD_FOLDER = "tensorboard"


class TensorboardLog:
    """Writes what is new in a history; one object per run of a sweep.

    Attention maps are written every few rounds. Those of the preset ``paper`` require a
    training of its encoder, which on a space of networks takes about a minute, even with the
    few rows that ``attention_maps`` uses: they are written once, when the log of a sweep that
    has used its budget is closed.

    Args:
        folder: of the sweep; files go to its folder ``tensorboard``.
        metric: name of the value.
        method: the sweep's method and
        options: its options, which decide whether there are attention maps;
        seed: its seed.
        maps_every: rounds between attention maps; 0 for none.
        target: where files go instead; the curves of trainers that write their own come, too.
    """

    def __init__(
        self,
        folder: Path,
        metric: str = "value",
        method: str = "attnbo",
        options: dict[str, Any] | None = None,
        seed: int = 0,
        maps_every: int = 5,
        target: Path | None = None,
    ) -> None:
        if maps_every < 0:
            raise NasboError(f"maps_every >= 0 must hold, but got {maps_every}")
        self.folder = folder / TENSORBOARD_FOLDER if target is None else target
        self._is_elsewhere = target is not None
        self.metric, self.maps_every = metric, maps_every
        self._search = (method, options, seed)
        self._are_maps_costly = (options or {}).get("preset") == "paper"
        self._sweep_folder = folder
        self._last: View | None = None
        self._seen = (0, 0, 0)
        self._n_curve = 0
        self._written: set[tuple[int, float]] = set()
        self._maps_at: int | None = None
        self._writer: Any = None

    def update(self, history: View) -> None:
        """Write what is new since the last call; after a resume, everything is written again.

        Cheap if nothing is new, so it can be called as often as a display.
        """
        n_pauses = sum(len(run.pauses) for run in history.runs) if history.rungs else 0
        seen = (history.n_ended, len(history.rounds), n_pauses)
        if seen == self._seen:
            return
        self._seen, self._last = seen, history
        self._write_curve(history)
        for run in history.runs:
            end = (run.number, run.ended_at or 0.0)
            is_known = run.is_open or (run.is_paused and history.rungs is None)
            if not is_known and end not in self._written:
                self._written.add(end)
                self._write_run(history, run)
        if not self._are_maps_costly:
            self._write_maps(history)
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Close the file, after the maps that are too expensive during a sweep."""
        last, self._last = self._last, None
        if self._are_maps_costly and last is not None and _is_used_up(last):
            self._write_maps(last)
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _file(self) -> Any:
        if self._writer is None:
            from torch.utils.tensorboard.writer import SummaryWriter

            # Data of an earlier run is written again: purge it.
            self._writer = SummaryWriter(str(self.folder), purge_step=0)
        return self._writer

    def _write_curve(self, history: View) -> None:
        """The best so far over the ended trials or, with rungs, the trained steps."""
        full = 1 if history.rungs is None else history.rungs.full
        curve = best_course(history, is_open=True)
        for used, value in curve[self._n_curve :]:
            if not math.isnan(value):
                self._file().add_scalar(f"best/{self.metric}", value, round(used * full))
        self._n_curve = len(curve)

    def _write_run(self, history: View, run: Run) -> None:
        """Replace a trial's row of hyperparameters and a run's curve."""
        from torch.utils.tensorboard.summary import hparams
        from torch.utils.tensorboard.writer import SummaryWriter

        trial = history.trial(run.number)
        has_row = is_valued(trial) and not run.is_repeat
        curve = [] if self._has_own_files(run) else clean_curve(run.curve)
        folder = self.folder / trial_name(run.number)
        for old in folder.glob("events.*"):
            old.unlink()
        if not has_row and not curve:
            return
        with SummaryWriter(str(folder)) as writer:
            if has_row:
                row = hyperparameters(history, trial)
                result = {f"hparam/{self.metric}": trial.value}
                for part in hparams(row, result):  # type: ignore[no-untyped-call]
                    writer.file_writer.add_summary(part)
                writer.add_scalar(f"hparam/{self.metric}", trial.value, trial.id)
            for step, value in curve:
                writer.add_scalar(self.metric, value, step)

    def _has_own_files(self, run: Run) -> bool:
        """Whether the trainer wrote curves itself, where they are seen beside those from here."""
        if self._is_elsewhere:
            return False
        own = trial_folder(self._sweep_folder, run.number)
        return any(own.rglob("*tfevents*"))

    def _write_maps(self, history: View) -> None:
        number = len(history.rounds) - 1
        is_due = self._maps_at is None or number >= self._maps_at + self.maps_every
        is_ready = number >= 1 and len(history.rows()) >= 2 and history.best_per_subspace()
        if not self.maps_every or not is_due or not is_ready:
            return
        method, options, seed = self._search
        try:
            maps = attention_maps(history, method, options, seed)
        except NoAttentionError:
            self.maps_every = 0  # a later call would fail, too
            return
        self._maps_at = number
        for one in maps:
            name = f"attention/{one.title}"
            picture = map_picture(one, self.metric)
            self._file().add_figure(name, picture, global_step=number)


def _is_used_up(history: View) -> bool:
    """Whether the budget is used; with rungs, whether it allows nothing more."""
    budget = history.budget or 1
    return history.n_ended >= budget if history.rungs is None else is_complete(history, budget)


def hyperparameters(history: View, trial: Trial) -> dict[str, Any]:
    """A config as a row of hyperparameters, with one entry per list element."""
    row: dict[str, Any] = {"trial": trial.id, "subspace": history.subspace(trial).id}
    for coordinate in history.subspace(trial).coordinates:
        value = coordinate.value_in(trial.config)
        row[coordinate.label] = "none" if value is None else value
    return row


def map_picture(one: AttentionMap, metric: str) -> Any:
    """An attention map as a matplotlib figure with token labels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    n = len(one.labels)
    side = 3.0 + 0.16 * n
    figure = Figure(figsize=(side, side), dpi=80, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    image = axes.imshow(one.weights, cmap="Blues", vmin=0.0)
    axes.set_xticks(range(n), one.labels, rotation=90, fontsize=7)
    axes.set_yticks(range(n), one.labels, fontsize=7)
    title = one.title
    if one.trial is not None:
        title = f"trial {one.trial.id}, {metric} {last_text(one.trial)}"
    axes.set_title(title, fontsize=9)
    figure.colorbar(image, ax=axes, shrink=0.7)
    return figure


def write_tensorboard(folder: Path, history: View, metric: str = "value", **search: Any) -> Path:
    """Write a whole history at once; ``search`` are arguments of ``TensorboardLog``.

    Returns:
        The folder for TensorBoard.
    """
    log = TensorboardLog(folder, metric, **search)
    try:
        log.update(history)
    finally:
        log.close()
    return log.folder
