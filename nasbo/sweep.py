"""A sweep's settings and folder: YAML comes in; settings, status and tables go out. No Ray here."""

from __future__ import annotations

import os
import platform
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib import metadata
from pathlib import Path
from typing import Any

from nasbo.errors import NasboError, SpaceError, SweepError
from nasbo.feasibility import failing_regions
from nasbo.history import History, Mode, Trial, replay
from nasbo.history.journal import read_events, write_durably
from nasbo.limits import Limits, parse_limits
from nasbo.search.repeats import is_complete
from nasbo.space import Space, find_space_file, load_space
from nasbo.space.plain_yaml import UNREADABLE, read_yaml, write_yaml
from nasbo.storage.mirror import JOURNAL_FILE as JOURNAL_FILE
from nasbo.storage.mirror import is_running, push, shown
from nasbo.trainer import TrainerSummary

SETTINGS_FILE = "sweep.yaml"
SPACE_FILE = "space.yaml"
SHIPPED_TRAINERS = {"nas_cifar10": "trainers.cifar10:train"}
"""Trainers by how the names of their space files begin."""
DEFAULT_METHOD = "attnbo"
MAX_TIMEOUT_S = 31_536_000
"""A year: Python's own timers overflow at some length."""


@dataclass(frozen=True)
class Sweep:
    """The settings of a sweep; frozen in its folder when it begins.

    ``slots`` is a number of trials at once or ``"auto"``, which follows the cluster. ``share`` and
    ``deadline_s`` let a round end before all of its trials have: the next one opens when that
    share has ended, or that long after the round opened.

    A trial that crashes or is killed is run again ``max_failures`` times, one that a machine lost
    always; one that does not report for ``report_timeout_s`` is ended and run again. After
    ``max_failures_in_a_row`` trials that failed one after the other the sweep stops. Checkpoints
    are kept of the trials that run and of the ``keep_checkpoints`` best.

    ``constraints`` are inequalities about numbers of the trainer's ``summary``: configs outside are
    not suggested. The best ``repeat_top`` configs are trained ``repeats`` more times with other
    seeds, outside the budget, and count with their mean. ``provenance`` is what the trainer says
    of its data when the sweep begins.

    ``resources`` are custom resources of Ray that a trial takes, such as ``{spot: 0.001}``: it runs
    only on nodes that offer them. ``storage_path`` is where the sweep's folder is made if no folder
    is named: a path that all nodes share, or a URL such as ``s3://bucket/runs``.
    """

    space: str
    trainer: str
    trials: int = 40
    method: str = DEFAULT_METHOD
    method_options: dict[str, Any] = field(default_factory=dict)
    trainer_options: dict[str, Any] = field(default_factory=dict)
    schedule: str = "round"
    batch: int | None = None
    share: float = 1.0
    deadline_s: float | None = None
    slots: int | str = "auto"
    metric: str | None = None
    mode: Mode = "min"
    cpus_per_trial: float = 1
    gpus_per_trial: float = 0
    resources: dict[str, float] = field(default_factory=dict)
    max_failures: int = 2
    max_failures_in_a_row: int = 20
    report_timeout_s: float | None = None
    keep_checkpoints: int = 3
    constraints: list[str] = field(default_factory=list)
    repeats: int = 0
    repeat_top: int = 3
    seed: int = 0
    time_limit_s: float | None = None
    stop_at: float | None = None
    warm_start: str | None = None
    address: str | None = None
    storage_path: str | None = None
    working_folder: str = ""
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for rule, holds in _rules(self):
            if not holds:
                raise SweepError(rule)
        parse_limits(self.constraints)

    @property
    def needs(self) -> dict[str, float]:
        """What one trial takes of a node, by Ray's names."""
        own = {"CPU": self.cpus_per_trial, "GPU": self.gpus_per_trial}
        return {name: amount for name, amount in {**own, **self.resources}.items() if amount}

    def notes(self) -> dict[str, Any]:
        """What the journal's first line remembers beside the search's own settings."""
        names = ["trials", "schedule", "batch", "metric", "trainer", "trainer_options"]
        names += ["constraints", "repeats", "repeat_top", "provenance"]
        packages = ("nasbo", "ray", "torch", "gpytorch", "botorch", "numpy")
        versions = {name: metadata.version(name) for name in packages}
        versions["python"] = platform.python_version()
        return {**{name: getattr(self, name) for name in names}, "versions": versions}


def _rules(sweep: Sweep) -> list[tuple[str, bool]]:
    slots, batch, trials = sweep.slots, sweep.batch, sweep.trials
    return [
        (f"trials >= 1 must hold, but got {trials!r}", _is_count(trials)),
        (f"batch >= 1 must hold, but got {batch!r}", batch is None or _is_count(batch)),
        (
            f"slots must be a number >= 1 or auto, got {slots!r}",
            slots == "auto" or _is_count(slots),
        ),
        (f"mode must be min or max, got {sweep.mode!r}", sweep.mode in ("min", "max")),
        (
            f"schedule must be round or async, got {sweep.schedule!r}",
            sweep.schedule in ("round", "async"),
        ),
        (f"0 < share <= 1 must hold, but got {sweep.share!r}", 0 < sweep.share <= 1),
        *_resource_rules(sweep),
        *_failure_rules(sweep),
        (f"seed must be an integer >= 0, got {sweep.seed!r}", _is_count(sweep.seed, 0)),
        (f"stop_at must be a number, got {sweep.stop_at!r}", _is_number(sweep.stop_at)),
        (f"repeats >= 0 must hold, but got {sweep.repeats!r}", _is_count(sweep.repeats, 0)),
        (f"repeat_top >= 1 must hold, but got {sweep.repeat_top!r}", _is_count(sweep.repeat_top)),
        *(
            (f"{name} must be seconds above 0, got {seconds!r}", _is_time(seconds))
            for name in ("deadline_s", "time_limit_s")
            for seconds in (getattr(sweep, name),)
        ),
        *_kind_rules(sweep),
    ]


def _kind_rules(sweep: Sweep) -> list[tuple[str, bool]]:
    """What must be text, a list or a mapping."""
    options = sweep.method_options
    return [
        (
            f"constraints must be a list, got {sweep.constraints!r}",
            isinstance(sweep.constraints, list),
        ),
        *(
            (f"{name} must be text, got {text!r}", isinstance(text, str))
            for name in ("trainer", "method")
            for text in (getattr(sweep, name),)
        ),
        *(
            (f"{name} must be text, got {text!r}", text is None or isinstance(text, str))
            for name in ("metric", "warm_start", "address", "storage_path")
            for text in (getattr(sweep, name),)
        ),
        *(
            (f"{name} must be a mapping, got {value!r}", isinstance(value, dict))
            for name in ("method_options", "trainer_options", "resources")
            for value in (getattr(sweep, name),)
        ),
        (
            f"names of method_options must be text, got {options!r}",
            isinstance(options, dict) and all(isinstance(name, str) for name in options),
        ),
    ]


def _resource_rules(sweep: Sweep) -> list[tuple[str, bool]]:
    cpus, gpus = sweep.cpus_per_trial, sweep.gpus_per_trial
    return [
        (f"cpus_per_trial >= 0 must hold, but got {cpus!r}", _is_number(cpus) and cpus >= 0),
        (f"gpus_per_trial >= 0 must hold, but got {gpus!r}", _is_number(gpus) and gpus >= 0),
        (
            f"gpus_per_trial must be whole above 1, but got {gpus!r}",
            gpus <= 1 or gpus % 1 == 0,
        ),
        (
            f"resources must be amounts above 0 by name, got {sweep.resources!r}",
            _are_amounts(sweep.resources),
        ),
        ("cpus_per_trial or gpus_per_trial must be above 0", cpus + gpus > 0),
    ]


def _failure_rules(sweep: Sweep) -> list[tuple[str, bool]]:
    timeout_s = sweep.report_timeout_s
    return [
        (
            f"max_failures >= 0 must hold, but got {sweep.max_failures!r}",
            _is_count(sweep.max_failures, 0),
        ),
        (
            f"max_failures_in_a_row >= 1 must hold, but got {sweep.max_failures_in_a_row!r}",
            _is_count(sweep.max_failures_in_a_row),
        ),
        (
            f"0 < report_timeout_s <= {MAX_TIMEOUT_S} must hold, but got {timeout_s!r}",
            _is_time(timeout_s) and (timeout_s is None or timeout_s <= MAX_TIMEOUT_S),
        ),
        (
            f"keep_checkpoints >= 0 must hold, but got {sweep.keep_checkpoints!r}",
            _is_count(sweep.keep_checkpoints, 0),
        ),
    ]


def _is_count(value: Any, least: int = 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _are_amounts(resources: Any) -> bool:
    """Amounts by name; CPU and GPU have settings of their own."""
    return isinstance(resources, dict) and all(
        isinstance(name, str) and name not in ("CPU", "GPU") and _is_time(amount) and amount
        for name, amount in resources.items()
    )


def _is_time(value: Any) -> bool:
    return value is None or (_is_number(value) and value > 0)


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (is_number and abs(value) <= sys.float_info.max)


def read_settings(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Settings from a sweep file, or ``{"space": path}`` if the file is a space.

    Raises:
        SweepError: neither of both, or an unknown setting.
    """
    file = find_space_file(path)
    try:
        content = read_yaml(file.read_text(encoding="utf-8"))
    except UNREADABLE:
        content = None  # the space loader below says what is wrong, with the line
    if not isinstance(content, dict) or not _is_sweep(content):
        load_space(file)
        return {"space": str(file)}
    known = [item.name for item in fields(Sweep) if item.name != "provenance"]
    if unknown := [key for key in content if key not in known]:
        raise SweepError(f"{file}: unknown setting {unknown[0]!r}; known: {', '.join(known)}")
    return {**content, "space": _beside(file, content["space"])}


def _is_sweep(content: Mapping[Any, Any]) -> bool:
    return isinstance(content.get("space"), str)


def _beside(file: Path, space: str) -> str:
    """A sweep file names its space relative to itself, or by a shipped name."""
    near = file.parent / space
    return str(near if near.exists() else find_space_file(space))


def make_sweep(settings: Mapping[str, Any]) -> Sweep:
    """Settings as a sweep; ``SweepError`` with the rule where one is broken."""
    settings = {key: value for key, value in settings.items() if value is not None}
    if isinstance(settings.get("constraints"), str):
        settings["constraints"] = [settings["constraints"]]
    name = Path(str(settings.get("space", ""))).stem
    shipped = (SHIPPED_TRAINERS[start] for start in SHIPPED_TRAINERS if name.startswith(start))
    settings.setdefault("trainer", next(shipped, None))
    if settings["trainer"] is None:
        raise SweepError("a trainer is needed: --trainer module:function")
    try:
        return Sweep(**settings)
    except TypeError as error:
        raise SweepError(f"bad settings: {error}") from error


def limits_of(sweep: Sweep) -> Limits | None:
    """The constraints of a sweep, about what its trainer says of configs; ``None`` for none."""
    if not sweep.constraints:
        return None
    describe = TrainerSummary(sweep.trainer, sweep.trainer_options, sweep.working_folder)
    return Limits(parse_limits(sweep.constraints), describe)


def create_folder(folder: Path, sweep: Sweep) -> Sweep:
    """Make a sweep's folder, with its settings and a copy of its space."""
    if (folder / SETTINGS_FILE).exists():
        place = shown(folder)
        raise SweepError(f"{place} holds a sweep already: continue it by nasbo resume {place}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        write_durably(folder / SPACE_FILE, find_space_file(sweep.space).read_bytes())
        write_durably(folder / SETTINGS_FILE, write_yaml(asdict(sweep)).encode())
    except OSError as error:
        raise SweepError(f"{folder}: cannot be written: {error}") from error
    push(folder, (SPACE_FILE, SETTINGS_FILE))
    return sweep


def trial_name(number: int) -> str:
    """A trial's folder inside the sweep's."""
    return f"trials/{number:05d}"


def trial_folder(folder: str | os.PathLike[str], number: int) -> Path:
    """Where a trial of a sweep keeps its checkpoints and logs."""
    return Path(folder) / trial_name(number)


def open_folder(folder: Path) -> tuple[Sweep, Space]:
    """The settings and the space of a sweep's folder."""
    file = folder / SETTINGS_FILE
    try:
        content = read_yaml(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SweepError(f"{shown(folder)} holds no sweep ({SETTINGS_FILE} is missing)") from error
    except UNREADABLE as error:
        raise SweepError(f"{file}: cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise SweepError(f"{file}: must be a mapping of settings")
    try:
        return make_sweep(content), load_space(folder / SPACE_FILE)
    except SpaceError as error:
        raise SweepError(f"the sweep's copy of its space is broken: {error}") from error


def read_history(folder: Path) -> tuple[Sweep, History]:
    """A sweep and its history, as a reader sees them."""
    sweep, space = open_folder(folder)
    return sweep, replay(space, sweep.mode, read_events(folder / JOURNAL_FILE))


def state_of(history: History, budget: int, is_locked: bool) -> str:
    """``finished``, ``running`` or ``interrupted``."""
    if is_complete(history, budget):
        return "finished"
    return "running" if is_locked else "interrupted"


def status(folder: Path) -> dict[str, Any]:
    """Where a sweep stands, as plain values."""
    sweep, history = read_history(folder)
    budget = history.budget or sweep.trials
    counts = history.state_counts()
    best = history.best
    state = state_of(history, budget, is_running(folder))
    n_running = counts["running"] if state == "running" else 0
    return {
        "state": state,
        "n_trials": budget,
        "finished": counts["finished"],
        "running": n_running,
        "waiting": counts["waiting"] + counts["running"] - n_running,
        "failed": counts["failed"],
        **({"paused": counts["paused"]} if counts["paused"] else {}),
        "causes": dict(history.cause_counts()),
        "retries": dict(history.retry_counts()),
        "fallbacks": sum(trial.source == "fallback" for trial in history.trials),
        "repeats": dict(Counter(run.cause or run.state for run in history.repeats)),
        "rounds": len(history.rounds),
        "set_aside": [
            f"{region}; tried again in round {region.next_probe}"
            for region in failing_regions(history)
        ],
        "expects_nothing": expects_nothing(history),
        "best": _best(best) if best else None,
        "method": sweep.method,
        "folder": shown(folder),
    }


def expects_nothing(history: History) -> list[str]:
    """Subspaces in which the method saw no improvement when it last decided."""
    last = max((trial.round for trial in history.suggested), default=-1)
    trials = [trial for trial in history.suggested if trial.round == last]
    hopeless = (trial for trial in trials if trial.info.get("expects_nothing"))
    return [f"{history.subspace(t).id} (log-EI {t.info['log_ei']:.4g})" for t in hopeless]


def _best(trial: Trial) -> dict[str, Any]:
    return {
        "trial": trial.id,
        "value": trial.value,
        "values": list(trial.values),
        "config": trial.config,
        "metrics": dict(trial.metrics),
        **({"origin": trial.info["origin"]} if "origin" in trial.info else {}),
    }


def best_of(folder: Path) -> Trial:
    """The best trial of a sweep."""
    _, history = read_history(folder)
    if history.best is None:
        raise NasboError(f"{folder}: nothing has finished yet")
    return history.best
