"""Settings of a sweep: each is declared once, with its rule, its flag and what may change it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from nasbo.errors import SweepError
from nasbo.history import Mode
from nasbo.limits import Limits, parse_limits
from nasbo.space import find_space_file, load_space
from nasbo.space.plain_yaml import UNREADABLE, read_yaml
from nasbo.sweeps import kinds
from nasbo.sweeps.declaration import Scope, Setting, setting
from nasbo.sweeps.kinds import Rule, choice, count, pairs
from nasbo.trainer import TrainerSummary

SHIPPED_TRAINERS = {"nas_cifar10": "trainers.cifar10:train"}
"""Trainers by how the names of their space files begin."""


def _are_amounts(resources: Any) -> bool:
    """Amounts by name; some resources have settings of their own."""
    return isinstance(resources, dict) and all(
        isinstance(name, str) and name not in OWN_RESOURCES and kinds.is_positive(amount)
        for name, amount in resources.items()
    )


_AMOUNTS = Rule("{name} must be amounts above 0 by name, got {value!r}", _are_amounts)
_ALL = ("run", "resume", "finalize")


@dataclass(frozen=True)
class Sweep:
    """The settings of a sweep; frozen in its folder when it begins.

    ``share`` and ``deadline_s`` let a round end before all of its trials have: the next one opens
    when that share has ended, or that long after the round opened. A trial that crashes or is
    killed is run again ``max_failures`` times, one that a machine lost always. Checkpoints are
    kept of the trials that run and of the ``keep_checkpoints`` best. ``provenance`` is what the
    trainer says of its data when the sweep begins.
    """

    # fmt: off
    space: str = setting(
        MISSING, kinds.TEXT, "File, or name of a shipped one.",
        takers=(), scope=Scope.CHECKED_APART)
    trainer: str = setting(MISSING, kinds.TEXT, "module:function, importable or in this folder.")
    method: str = setting("attnbo", kinds.TEXT, "See nasbo methods. [default: {default}]")
    method_options: dict[str, Any] = setting(
        dict, kinds.KEYWORDS, "For the method; added to the sweep file's, key by key.",
        flags=("-m", "--method-option"), owner="method")
    trainer_options: dict[str, Any] = setting(
        dict, kinds.OPTIONS,
        "For the trainer, e.g. recipe=proxy; added to the sweep file's, key by key.",
        flags=("-o", "--option"), owner="trainer")
    trials: int = setting(
        40, count(1), "Configs in all. [default: {default}]",
        takers=("run", "resume"), scope=Scope.CHECKED_APART)
    slots: int | str = setting(
        "auto", kinds.SLOTS,
        "Trials at once, or auto: what the cluster holds. [default: {default}]",
        takers=_ALL, scope=Scope.RUN)
    schedule: str = setting(
        "round", choice("round", "async"),
        "round: one config per subspace, then wait; async: refill at once.")
    batch: int | None = setting(None, count(1), "Configs per round; 1 is sequential.")
    share: float = setting(1.0, kinds.SHARE, "Part of a round to wait for. [default: {default}]")
    deadline_s: float | None = setting(None, kinds.SECONDS, "Seconds to wait for a round.")
    metric: str | None = setting(None, kinds.TEXT, "Which of the trainer's results to optimise.")
    mode: Mode = setting("min", choice("min", "max"), "[default: the trainer's own, else min]")
    cpus_per_trial: float = setting(
        1, kinds.AMOUNT, "[default: {default}]", takers=_ALL, scope=Scope.RUN, resource="CPU")
    gpus_per_trial: float = setting(
        0, kinds.GPUS, "1, a share such as 0.5, or several. [default: {default}]",
        takers=_ALL, scope=Scope.RUN, resource="GPU")
    resources: dict[str, float] = setting(
        dict, pairs(_AMOUNTS, metavar="NAME=AMOUNT"),
        "Of Ray's own, e.g. spot=0.001: only nodes that offer it; added to the sweep file's, key "
        "by key.", flags=("--resource",), scope=Scope.RUN)
    max_failures: int = setting(
        2, count(0), "Retries of a trial that crashes. [default: {default}]", scope=Scope.RUN)
    max_failures_in_a_row: int = setting(
        20, count(1), "Then the sweep stops. [default: {default}]", scope=Scope.RUN)
    report_timeout_s: float | None = setting(
        None, kinds.TIMEOUT, "End and retry a trial that is silent for so long. [default: never]",
        takers=("run", "finalize"), scope=Scope.RUN)
    keep_checkpoints: int = setting(
        3, count(0), "Of how many best trials. [default: {default}]", scope=Scope.RUN)
    constraints: list[str] = setting(
        list, kinds.LIMITS,
        "About any number of the trainer's summary, e.g. 'parameters<=2e6'; added to the sweep "
        "file's.", flags=("--constraint",))
    repeats: int = setting(
        0, count(0, is_told=True),
        "Train the best configs so many more times, with other seeds, outside the trials; they "
        "count with their mean. [default: {default}]", takers=("run", "resume"))
    repeat_top: int = setting(
        3, count(1, is_told=True), "How many best configs. [default: 3]", takers=("run", "resume"))
    rungs: str | list[int] = setting(
        "off", kinds.RUNGS,
        "Train every config to the first of these steps, and only the best further: auto is a "
        "27th, a 9th, a third and the whole of a training. The trials are then full trainings' "
        "worth. [default: {default}]")
    eta: int = setting(
        3, count(2, is_told=True), "With rungs, one in so many goes on. [default: {default}]")
    keep_paused: int = setting(
        64, count(0),
        "With rungs: of how many paused trials checkpoints are kept; the others can only begin "
        "again. [default: {default}]", scope=Scope.RUN)
    time_limit_s: float | None = setting(
        None, kinds.DURATION, "Of this run, e.g. 90s, 30m, 12h.", takers=_ALL, scope=Scope.RUN)
    stop_at: float | None = setting(
        None, kinds.NUMBER,
        "End when this value is reached; under noise, when it is expected of the best trial: a "
        "lucky value ends nothing.")
    begin: list[dict[str, Any]] | str = setting(
        list, kinds.BEGIN,
        "A YAML or JSON file of configs to try before all others; in a sweep file also a list.")
    warm_start: str | None = setting(None, kinds.FOLDER, "Learn from another sweep's results.")
    address: str | None = setting(
        None, kinds.TEXT,
        "Of a Ray cluster, or local: this machine, where a new sweep runs by default.",
        takers=_ALL, scope=Scope.CHECKED_APART)
    seed: int = setting(0, kinds.SEED, "")
    storage_path: str | None = setting(
        None, kinds.TEXT,
        "Where a folder is made if none is named: a path that all nodes share, or a URL.",
        takers=(), scope=Scope.CHECKED_APART)
    working_folder: str = setting(
        "", kinds.TEXT, "Where the trainer lies.", takers=(), scope=Scope.CHECKED_APART)
    provenance: dict[str, Any] = setting(
        dict, kinds.MAPPING, "The trainer's words on its data.",
        takers=(), scope=Scope.CHECKED_APART)
    # fmt: on

    def __post_init__(self) -> None:
        for name, declared in SETTINGS.items():
            declared.check(getattr(self, name))
        if not self.cpus_per_trial + self.gpus_per_trial > 0:
            raise SweepError("cpus_per_trial or gpus_per_trial must be above 0")
        parse_limits(self.constraints)

    @property
    def needs(self) -> dict[str, float]:
        """What one trial takes of a node, by Ray's names."""
        own = {resource: getattr(self, name) for resource, name in OWN_RESOURCES.items()}
        return {name: amount for name, amount in {**own, **self.resources}.items() if amount}

    def notes(self) -> dict[str, Any]:
        """What the journal's first line remembers beside the search's own settings."""
        names = ["trials", "schedule", "batch", "metric", "trainer", "trainer_options"]
        names += ["constraints", "repeats", "repeat_top", "provenance"]
        packages = ("nasbo", "ray", "torch", "gpytorch", "botorch", "numpy")
        versions = {name: metadata.version(name) for name in packages}
        versions["python"] = platform.python_version()
        return {**{name: getattr(self, name) for name in names}, "versions": versions}


def _declared() -> Iterator[Setting]:
    """What the fields declare, with their names, defaults and flags."""
    for item in fields(Sweep):
        flag = f"--{item.name.removesuffix('_s').replace('_', '-')}"
        found: Setting = item.metadata["setting"]
        flags = found.flags or (flag,)
        yield replace(found, name=item.name, default=item.default, flags=flags)


SETTINGS = {declared.name: declared for declared in _declared()}
PLACEMENT = [name for name, declared in SETTINGS.items() if declared.scope is Scope.RUN]
"""Settings about the machines of one run and the patience with them: each run may have its own."""
MAY_DIFFER = {name for name, declared in SETTINGS.items() if declared.scope is not Scope.SWEEP}
"""Settings that say where a sweep runs and how long, not what it is."""
MERGED = {one.name: one.owner for one in SETTINGS.values() if one.kind.joins == "keys"}
"""Settings that are mappings, and the setting that says whose options they are."""
LISTS = [name for name, declared in SETTINGS.items() if declared.kind.joins == "items"]
OWN_RESOURCES = {one.resource: one.name for one in SETTINGS.values() if one.resource}
"""Settings by Ray's names of what a trial takes."""


def taken_by(command: str) -> list[Setting]:
    """The settings of which a command has flags."""
    return [declared for declared in SETTINGS.values() if command in declared.takers]


def parsed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the command line as settings, checked; those not given are left out."""
    settings = {}
    for name, word in given.items():
        if word not in (None, ()):
            settings[name] = SETTINGS[name].kind.parse(word)
            SETTINGS[name].check(settings[name])
    return settings


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
    known = [name for name in SETTINGS if name != "provenance"]
    if unknown := [key for key in content if key not in known]:
        raise SweepError(f"{file}: unknown setting {unknown[0]!r}; known: {', '.join(known)}")
    if isinstance(begin := content.get("begin"), str):
        content["begin"] = str(file.parent / begin)
    return {**content, "space": _beside(file, content["space"])}


def _is_sweep(content: Mapping[Any, Any]) -> bool:
    return isinstance(content.get("space"), str)


def _beside(file: Path, space: str) -> str:
    """A sweep file names its space relative to itself, or by a shipped name."""
    near = file.parent / space
    return str(near if near.exists() else find_space_file(space))


def as_list(value: Any) -> Any:
    """One text as a list of it; all else as it is."""
    return [value] if isinstance(value, str) else value


def make_sweep(settings: Mapping[str, Any]) -> Sweep:
    """Settings as a sweep; ``SweepError`` with the rule where one is broken."""
    settings = {key: value for key, value in settings.items() if value is not None}
    settings |= {name: as_list(settings[name]) for name in LISTS if name in settings}
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
