"""Sweeps as studies of Optuna, in its journal storage: optuna-dashboard shows them."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from nasbo.errors import SweepError
from nasbo.history import PREDICTION, Trial, json_safe
from nasbo.interchange.distributions import distribution_of
from nasbo.interchange.listing import Translation, listing_of
from nasbo.interchange.packages import need
from nasbo.sweeps.folder import SweepFolder
from nasbo.sweeps.rows import OWN

PURPOSE = "a sweep as a study of Optuna"
MARK = "nasbo"
"""Attribute of the studies that are written here."""
_FIXED = "fixed_params"
"""Where Optuna keeps the parameters of a trial that waits."""


def write_study(sweep: SweepFolder, path: Path) -> int:
    """Write a sweep as a file of Optuna's journal storage, as a whole or not at all.

    A file that was written here before is replaced; any other one stays, and is an error.

    Returns:
        How many trials the study has.
    """
    optuna = need("optuna", PURPOSE, "optuna")
    lines = _Lines()
    with _quiet(optuna):
        _check_replaceable(optuna, path)
        study = _new_study(optuna, sweep, lines)
        writer = _Writer.of(optuna, sweep)
        for trial in sweep.history.trials:
            study.add_trial(writer.frozen(trial))
        _write(optuna, lines, path)
    return len(sweep.history.trials)


class _Lines:
    """Journal of Optuna in memory: a thousand trials are one write to the disk."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        return map(json.loads, self.texts[log_number_from:])

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        self.texts += map(json.dumps, logs)


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Without what Optuna says of new studies and of what is experimental."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _check_replaceable(optuna: Any, path: Path) -> None:
    if not path.exists():
        return
    storages, is_own = optuna.storages, False
    try:
        if path.is_file():
            held = storages.JournalStorage(storages.journal.JournalFileBackend(str(path)))
            is_own = all(MARK in one.user_attrs for one in held.get_all_studies())
            is_own = is_own and path.stat().st_size > 0
    except Exception as error:  # whatever Optuna raises: it is no file of nasbo
        raise SweepError(f"{path}: exists, and is no study that nasbo wrote: {error}") from error
    if not is_own:
        raise SweepError(f"{path}: exists, and is no study that nasbo wrote: name another file")


def _new_study(optuna: Any, sweep: SweepFolder, lines: _Lines) -> Any:
    settings = sweep.settings
    study = optuna.create_study(
        storage=optuna.storages.JournalStorage(lines),
        study_name=_last_part(sweep.name),
        direction="maximize" if settings.mode == "max" else "minimize",
    )
    study.set_metric_names([sweep.metric])
    told = {"method": settings.method, "seed": settings.seed, "space": settings.space}
    study.set_user_attr(MARK, {**told, "sweep": sweep.name, "state": sweep.state})
    return study


def _last_part(name: str) -> str:
    """The last part of a folder's path or URL."""
    return name.rstrip("/").rpartition("/")[2] if "://" in name else Path(name).resolve().name


def _write(optuna: Any, lines: _Lines, path: Path) -> None:
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.unlink(missing_ok=True)  # Optuna would write behind what is there
        backend = optuna.storages.journal.JournalFileBackend(str(partial))
        backend.append_logs([*lines.read_logs(0)])
        os.replace(partial, path)
    except OSError as error:
        raise SweepError(f"{path}: cannot be written: {error}") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


@dataclass(frozen=True)
class _Writer:
    """Trials of a sweep as Optuna has them.

    Attributes:
        is_over: whether paused trials stay where they are.
    """

    optuna: Any
    sweep: SweepFolder
    translation: Translation
    distributions: dict[str, Any]
    is_over: bool

    @staticmethod
    def of(optuna: Any, sweep: SweepFolder) -> _Writer:
        entries, translation = listing_of(sweep.space)
        distributions = {one.name: distribution_of(one.parameter) for one in entries}
        return _Writer(optuna, sweep, translation, distributions, sweep.state == "finished")

    def frozen(self, trial: Trial) -> Any:
        """A trial, with its config, its curve, its times and what nasbo knows of it."""
        state = self._state(trial)
        states = self.optuna.trial.TrialState
        params: dict[str, Any] = self.translation.values(trial.config)
        waits = state == states.WAITING
        made = self.optuna.trial.create_trial(
            state=state,
            value=trial.last_value if state in (states.COMPLETE, states.PRUNED) else None,
            params={} if waits else params,
            distributions={} if waits else {name: self.distributions[name] for name in params},
            user_attrs=self._attributes(trial),
            system_attrs={_FIXED: params} if waits else {},
            intermediate_values=dict(trial.curve),
        )
        if not waits:
            start = trial.started_at or trial.ended_at or trial.first.created_at
            made.datetime_start = datetime.fromtimestamp(start)
        if state.is_finished():
            end = max(trial.ended_at or 0.0, trial.started_at or 0.0)
            made.datetime_complete = datetime.fromtimestamp(end)
        return made

    def _state(self, trial: Trial) -> Any:
        states = self.optuna.trial.TrialState
        if trial.value is not None:
            return states.COMPLETE
        if trial.cause == "stopped" or (trial.state == "paused" and self.is_over):
            return states.PRUNED
        known = {"failed": states.FAIL, "waiting": states.WAITING}
        return known.get(trial.state, states.RUNNING)

    def _attributes(self, trial: Trial) -> dict[str, Any]:
        found: dict[str, Any] = {
            "number": trial.id,
            "subspace": self.sweep.history.subspace(trial).id,
            "source": trial.source,
            "round": trial.round,
            "state": trial.state,
            "cause": trial.cause,
            "message": trial.message or None,
            "twin": trial.twin,
            "values": list(trial.values) if len(trial.values) > 1 else None,
            **{key: trial.info.get(key) for key in PREDICTION},
            "estimate": trial.estimate.mean if trial.estimate else None,
            "estimate_sd": trial.estimate.sd if trial.estimate else None,
        }
        metrics = trial.metrics.items()
        found |= {f"metrics.{name}": value for name, value in metrics if not name.startswith(OWN)}
        return {name: value for name, value in json_safe(found).items() if value is not None}
