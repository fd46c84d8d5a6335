"""What faults did to a sweep: its folder comes in, counts of lost and doubled work go out."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nasbo.history import History
from nasbo.history.journal import read_events
from nasbo.storage.mirror import JOURNAL_FILE
from nasbo.sweeps.folder import SweepFolder, trial_folder

N_STEPS = 6


@dataclass
class Audit:
    """Counts over one or more sweeps; everything but the faults should stay 0."""

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


class Witness:
    """Remembers every result that the journal ever acknowledged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: dict[int, Any] = {}
        self.n_gone = 0

    def look(self) -> History:
        """Compare the journal with what was seen before."""
        history = SweepFolder(self.folder).history
        now = {t.id: (t.config, t.value) for t in history.trials if t.state == "finished"}
        self.n_gone += sum(now.get(number) != known for number, known in self.seen.items())
        self.seen |= now
        return history


def audit(witness: Witness, n_trials: int, expected: list[Any] | None) -> Audit:
    """Judge a sweep that has come to its end."""
    history = witness.look()
    events = read_events(witness.folder / JOURNAL_FILE)
    ends = Counter(e["run"] for e in events if e["event"] == "ended")
    configs = [trial.config for trial in history.trials]
    is_exact = history.n_ended == history.n_suggested == n_trials
    return Audit(
        trials=history.n_ended,
        lost=witness.n_gone + sum(t.state != "finished" for t in history.trials),
        doubled=sum(n > 1 for n in ends.values()),
        from_zero=sum(_began_again(witness.folder, t.id) for t in history.trials),
        budget_errors=int(not is_exact),
        differing=_n_differing(configs, expected),
        retries=history.retry_counts(),
    )


def _n_differing(configs: list[Any], expected: list[Any] | None) -> int:
    if expected is None:
        return 0
    same = sum(a == b for a, b in zip(configs, expected, strict=False))
    return max(len(configs), len(expected)) - same


def _began_again(folder: Path, number: int) -> bool:
    """Whether a step was done again although its checkpoint had been saved."""
    log = trial_folder(folder, number) / "steps.txt"
    saved = -1
    for line in log.read_text().splitlines():
        entry = json.loads(line)
        if entry["kind"] == "begin" and entry["step"] < saved:
            return True
        if entry["kind"] == "saved":
            saved = entry["step"]
    return False
