"""Measurement of what a promotion costs: a sweep with rungs whose training takes no time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nasbo.bench.overhead import SLOTS, local_ray, small_sweep, trivial
from nasbo.errors import NasboError
from nasbo.history.journal import read_events
from nasbo.space import Config, load_space
from nasbo.storage import JOURNAL_FILE
from nasbo.sweeps.folder import SPACE_FILE
from nasbo.trainer import Session

RESUMES = True
RUNGS = [1, 3, 9]
SETTINGS: dict[str, Any] = {"rungs": RUNGS, "metric": "value"}
_STATE = "step"


@dataclass(frozen=True)
class Promotions:
    """A sweep with rungs.

    Attributes:
        n_configs: number of configs that were started.
        n_promotions: number of times that a paused trial went on.
        seconds: wall-clock seconds of the whole sweep.
        waits: seconds from the hand-over of each promoted trial to Tune until
            its first report.
    """

    n_configs: int
    n_promotions: int
    seconds: float
    waits: tuple[float, ...]

    @property
    def per_stretch_s(self) -> float:
        """Seconds of a slot per training between two rungs."""
        return self.seconds * SLOTS / (self.n_configs + self.n_promotions)


def steps(options: Mapping[str, Any]) -> int:
    """Steps of a full training."""
    return RUNGS[-1]


def train(config: Config, session: Session) -> None:
    """Trainer that reports steps without any work, and goes on from a file with its step."""
    file = Path(session.folder) / _STATE
    done = int(file.read_text(encoding="utf-8")) if file.exists() else 0
    for step in range(done + 1, steps({}) + 1):
        file.write_text(str(step), encoding="utf-8")
        if not session.report({"value": trivial(config) / step}, step=step):
            return


def measure_promotions(n_trainings: int = 100) -> Promotions:
    """Run a sweep with rungs, of so many full trainings' worth, on two slots."""
    from nasbo.tune.run import run_sweep

    with local_ray(), tempfile.TemporaryDirectory(prefix="nasbo-promotions-") as root:
        folder, sweep = small_sweep(Path(root), f"{__name__}:train", n_trainings, **SETTINGS)
        begin = time.perf_counter()
        history = run_sweep(folder, sweep, load_space(folder / SPACE_FILE)).history
        seconds = time.perf_counter() - begin
        waits = tuple(waits_of(read_events(folder / JOURNAL_FILE)))
    if not waits:
        raise NasboError(f"n_trainings must be enough for a promotion, got {n_trainings}")
    return Promotions(history.n_suggested, len(waits), seconds, waits)


def waits_of(events: Iterable[Mapping[str, Any]]) -> Iterator[float]:
    """Seconds from the start of each promoted run to its first report, from a journal's lines."""
    promoted, started = set[int](), dict[int, float]()
    for event in events:
        kind = event["event"]
        if kind == "targeted" and event["reason"]:
            promoted.add(event["run"])
        elif kind == "started" and event["run"] in promoted:
            started[event["run"]] = event["time"]
            promoted.remove(event["run"])
        elif kind == "reported" and event["run"] in started:
            yield event["time"] - started.pop(event["run"])
