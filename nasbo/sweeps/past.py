"""Warm start: results of a past sweep for a new one, and a comparison of both."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nasbo.errors import ConfigError, SweepError, shorten
from nasbo.history import Objectives
from nasbo.history.events import PastRead
from nasbo.space import Config, Space
from nasbo.space.plain_yaml import write_yaml
from nasbo.sweeps.folder import SweepFolder
from nasbo.sweeps.settings import Sweep

MISSING = "nothing"


@dataclass(frozen=True)
class WarmStart:
    """Results of another sweep that a new one can use.

    Attributes:
        past: the other sweep; ``None`` without one.
        results: configs of the new sweep's space, and their values.
        remarks: differences between the sweeps, one line each; empty if they agree.
        is_comparable: whether trainer, options and data are the same: if not, only the surrogate
            uses the results, and none of them can be the best of the new sweep.
    """

    past: PastRead | None = None
    results: Sequence[tuple[Config, float]] = ()
    remarks: Sequence[str] = ()
    is_comparable: bool = True

    def require_results(self) -> None:
        """Raise ``SweepError`` if there is a past sweep without any result."""
        if self.past is not None and not self.results:
            raise SweepError(
                f"{self.past.name}: no trial has finished, so there is nothing to take over"
            )


def read_past(sweep: Sweep, space: Space) -> WarmStart:
    """Read the results of the sweep that ``warm_start`` names.

    Raises:
        SweepError: there is no such sweep, it has another metric or mode, or none of its results
            fit the space. A sweep without results is no error here: it may still be running.
    """
    if sweep.warm_start is None:
        return WarmStart()
    folder = SweepFolder(sweep.warm_start)
    held, history = folder.settings, folder.history
    _check_objective(sweep, held)
    results, refusals, n_finished = [], [], 0
    for trial in history.trials:
        if trial.state != "finished" or trial.value is None or not math.isfinite(trial.value):
            continue
        n_finished += 1
        try:
            results.append((space.canonical(trial.config), trial.value))
        except ConfigError as error:
            refusals.append(f"trial {trial.id}: {error}")
    if refusals and not results:
        raise SweepError(
            f"{sweep.warm_start}: no finished trial belongs to this space; {refusals[0]}"
        )
    remarks = list(differences(sweep, held))
    is_comparable = not remarks
    if not is_comparable:
        remarks.append("its results teach the surrogate, but do not count as results of this sweep")
    n_failed = sum(trial.cause is not None for trial in history.trials)
    if n_failed:
        remarks.append(f"{n_failed} trials that failed are not taken over")
    if refusals:
        remarks.append(
            f"{len(refusals)} of {n_finished} results do not fit this space and are left out; "
            f"{refusals[0]}"
        )
    return WarmStart(
        _past_read(sweep.warm_start, folder),
        results,
        [f"warm start from {sweep.warm_start}: {line}" for line in remarks],
        is_comparable,
    )


def _past_read(name: str, folder: SweepFolder) -> PastRead:
    journal = folder.journal_file.read_bytes() if folder.journal_file.exists() else b""
    return PastRead(
        name=name,
        digest=hashlib.sha256(journal).hexdigest(),
        yaml=write_yaml(folder.space.to_dict()),
        objectives=Objectives.of(folder.settings.mode, folder.settings.metric).to_json(),
    )


def _check_objective(sweep: Sweep, held: Sweep) -> None:
    """Raise for another metric or mode, whose values would be mistaken for this sweep's."""
    now, then = sweep.metric or "value", held.metric or "value"
    if (now, sweep.mode) != (then, held.mode):
        raise SweepError(
            f"{sweep.warm_start} has {held.mode} {then}, this sweep {sweep.mode} {now}: results "
            "can be taken over only between sweeps of one metric and mode"
        )


def differences(sweep: Sweep, held: Sweep) -> Iterator[str]:
    """Differences of two sweeps of one objective in trainer, options and data."""
    if sweep.trainer != held.trainer:
        yield f"its trainer is {held.trainer}, this one's is {sweep.trainer}"
    yield from _different("option", sweep.trainer_options, held.trainer_options)
    if sweep.provenance and held.provenance:
        yield from _different("data:", sweep.provenance, held.provenance)


def _different(what: str, now: Mapping[str, Any], then: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys((*then, *now)):
        values = [shorten(one[name]) if name in one else MISSING for one in (then, now)]
        if values[0] != values[1]:
            yield f"{what} {name} was {values[0]}, here {values[1]}"
