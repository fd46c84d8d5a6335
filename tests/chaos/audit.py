"""Audit of a sweep after faults: counts of lost and duplicated work."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nasbo.history import History, Trial
from nasbo.history.journal import read_events
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import SweepFolder, trial_folder

N_STEPS = 6


@dataclass
class Audit:
    """Counts over one or more sweeps; all but the faults should stay 0."""

    faults: Counter[str] = field(default_factory=Counter)
    trials: int = 0
    lost: int = 0
    doubled: int = 0
    from_zero: int = 0
    budget_errors: int = 0
    differing: int = 0
    retries: Counter[str] = field(default_factory=Counter)

    @property
    def is_clean(self) -> bool:
        return not any(
            (self.lost, self.doubled, self.from_zero, self.budget_errors, self.differing)
        )

    def __add__(self, other: Audit) -> Audit:
        return Audit(*(getattr(self, n) + getattr(other, n) for n in self.__dataclass_fields__))

    def rows(self) -> list[tuple[str, str]]:
        faults = [(f"faults: {kind}", str(n)) for kind, n in sorted(self.faults.items())]
        retries = [(f"retries: {kind}", str(n)) for kind, n in sorted(self.retries.items())]
        return [
            *faults,
            ("trials", str(self.trials)),
            ("results lost", str(self.lost)),
            ("results doubled", str(self.doubled)),
            ("restarted from zero despite a checkpoint", str(self.from_zero)),
            ("sweeps with a wrong budget", str(self.budget_errors)),
            ("configs unlike the uninterrupted search", str(self.differing)),
            *retries,
        ]


def results(trial: Trial) -> dict[int, float]:
    """The values of a trial by step: at its pauses and at its end."""
    found = {step: pause.value for step, pause in trial.first.pauses.items()}
    return found | ({trial.step: trial.value} if trial.value is not None else {})


def decisions(events: Iterable[Mapping[str, Any]]) -> list[Any]:
    """The configs of a search in order and, with rungs, its promotions."""
    found: list[Any] = []
    for event in events:
        if event["event"] == "suggested":
            found.append(event["config"])
        elif event["event"] == "targeted" and event["reason"]:
            found.append((event["run"], event["until"]))
    return found


class Witness:
    """Remembers every result that the journal has acknowledged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: dict[tuple[int, int], Any] = {}
        self.n_gone = 0

    def look(self) -> History:
        """Compare the journal with what was seen before."""
        history = SweepFolder(self.folder).history
        now = {
            (trial.id, step): (trial.config, value)
            for trial in history.trials
            for step, value in results(trial).items()
        }
        self.n_gone += sum(now.get(one) != known for one, known in self.seen.items())
        self.seen |= now
        return history


def audit(witness: Witness, n_trials: int, expected: list[Any] | None) -> Audit:
    """Audit a sweep that has finished."""
    history = witness.look()
    events = read_events(witness.folder / JOURNAL_FILE)
    ends = Counter((e["run"], e["step"]) for e in events if e["event"] == "ended")
    is_exact = history.n_ended == history.n_suggested == n_trials
    if history.rungs is not None:
        is_exact = n_trials - 1 < history.spent <= n_trials
    return Audit(
        trials=history.n_ended,
        lost=witness.n_gone
        + sum(t.state not in ("finished", "paused") for t in history.trials)
        + sum(t.state == "paused" and history.rungs is None for t in history.trials),
        doubled=sum(n > 1 for n in ends.values()),
        from_zero=sum(_began_again(witness.folder, t.id) for t in history.trials),
        budget_errors=int(not is_exact),
        differing=_n_differing(decisions(events), expected),
        retries=history.retry_counts(),
    )


def _n_differing(configs: list[Any], expected: list[Any] | None) -> int:
    if expected is None:
        return 0
    same = sum(a == b for a, b in zip(configs, expected, strict=False))
    return max(len(configs), len(expected)) - same


def _began_again(folder: Path, number: int) -> bool:
    """Whether a step was repeated although its checkpoint had been saved."""
    log = trial_folder(folder, number) / "steps.txt"
    saved = -1
    for line in log.read_text().splitlines():
        entry = json.loads(line)
        if entry["kind"] == "begin" and entry["step"] < saved:
            return True
        if entry["kind"] == "saved":
            saved = entry["step"]
    return False
