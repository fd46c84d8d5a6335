"""Sessions: interface between a trainer and its trial, and a session without a search."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol


class Session(Protocol):
    """Surroundings of one trial; `folder` belongs to the trial and survives restarts."""

    @property
    def folder(self) -> Path: ...

    @property
    def seed(self) -> int: ...

    @property
    def options(self) -> Mapping[str, Any]: ...

    @property
    def n_out_of_memory(self) -> int:
        """How often this trial has run out of memory so far; each time
        halves the parts of a batch.
        """

    @property
    def until(self) -> int | None:
        """The epoch at which the trial is to pause for a comparison; `None` to train to its end."""

    def report(self, metrics: dict[str, Any], step: int | None = None) -> bool:
        """Record the metrics of one finished epoch; the answer is whether to go on.

        Args:
            metrics: by name.
            step: how many epochs are done; by default, one more than at the last report.
        """


class LocalSession:
    """A session without a search: reports are collected in a list.

    Args:
        folder: of the trial; created if missing.
        seed: of weights, order and augmentation.
        options: a recipe's name and overrides, see `trainers.recipe`.
        until: from this step on, the answer to a report is to stop; `None` for never.
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
        """Append the metrics to `reports`."""
        self.reports.append(metrics)
        self.step = self.step + 1 if step is None else step
        return self.until is None or self.step < self.until
