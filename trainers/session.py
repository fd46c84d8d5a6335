"""Sessions: what a trainer is handed, and a session without any searcher."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol


class Session(Protocol):
    """One trial's surroundings; `folder` is the trial's own and survives restarts."""

    @property
    def folder(self) -> Path: ...

    @property
    def seed(self) -> int: ...

    @property
    def options(self) -> Mapping[str, Any]: ...

    @property
    def n_out_of_memory(self) -> int:
        """How often this trial has run out of memory so far; then smaller steps are wanted."""

    @property
    def until(self) -> int | None:
        """The epoch at which the trial is to pause, compared with others; `None` for its end."""

    def report(self, metrics: dict[str, Any], step: int | None = None) -> bool:
        """Hands over the metrics of one finished epoch; whether to go on.

        Args:
            metrics: by name.
            step: how many epochs are done; by default, one more than at the last report.
        """


class LocalSession:
    """A session without any searcher: reports are collected in a list.

    Args:
        folder: the trial's own folder; made if missing.
        seed: of weights, order and augmentation.
        options: a recipe's name and overrides, see `trainers.recipe`.
        until: the step from which on reports are answered by "do not go on"; `None` for never.
    """

    def __init__(
        self,
        folder: Path | str,
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
        until: int | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.seed = seed
        self.options: Mapping[str, Any] = dict(options or {})
        self.reports: list[dict[str, Any]] = []
        self.n_out_of_memory = 0
        self.until, self.step = until, 0

    def report(self, metrics: dict[str, Any], step: int | None = None) -> bool:
        """Appends the metrics to `reports`."""
        self.reports.append(metrics)
        self.step = self.step + 1 if step is None else step
        return self.until is None or self.step < self.until
