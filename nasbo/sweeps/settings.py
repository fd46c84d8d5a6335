"""Settings of a sweep, each declared once with its rule, flag and scope."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from nasbo.errors import SweepError
from nasbo.features import MARKED, Features
from nasbo.history import Mode, Objectives
from nasbo.limits import Limits, numbers_of, parse_limits
from nasbo.space import Space, find_space_file, load_space
from nasbo.space.plain_yaml import UNREADABLE, read_yaml
from nasbo.sweeps import kinds
from nasbo.sweeps.declaration import Scope, Setting, setting
from nasbo.sweeps.kinds import Rule, choice, count, pairs
from nasbo.sweeps.located import check_file
from nasbo.trainer import TrainerSummary, TrainerTable

SHIPPED_TRAINERS = dict.fromkeys(("nas_cifar10", "mnasnet"), "trainers.cifar10:train")
"""Trainers by the prefix of their space files' names."""


def _are_amounts(resources: Any) -> bool:
    """Whether a value is a mapping of positive amounts by name, of
    resources without own settings.
    """
    return isinstance(resources, dict) and all(
        isinstance(name, str) and name not in OWN_RESOURCES and kinds.is_positive(amount)
        for name, amount in resources.items()
    )


_AMOUNTS = Rule("{name} must be amounts above 0 by name, got {value!r}", _are_amounts)
_ALL = ("run", "resume", "finalize")


@dataclass(frozen=True)
class Sweep:
    """The settings of a sweep, which are frozen in its folder at the start.

    ``share`` and ``deadline_s`` end a round before all of its trials have ended: the next one opens
    when that fraction has ended, or that many seconds after the round opened. A trial that crashes
    or is killed is retried ``max_failures`` times, one that was lost with its machine always.
    Checkpoints are kept of running and paused trials and of the ``keep_checkpoints`` best.
    ``provenance`` is the trainer's description of its data at the start.
    """

    # fmt: off
    space: str = setting(
        MISSING, kinds.TEXT, "Space file, or name of a shipped space.",
        takers=(), scope=Scope.CHECKED_APART)
    trainer: str = setting(MISSING, kinds.TEXT, "Trainer: module:function, importable or here.")
    method: str = setting("attnbo", kinds.TEXT, "Search method. [default: {default}]")
    method_options: dict[str, Any] = setting(
        dict, kinds.KEYWORDS, "Option of the method; merged with the sweep file's.",
        flags=("-m", "--method-option"), owner="method")
    trainer_options: dict[str, Any] = setting(
        dict, kinds.OPTIONS,
        "Option of the trainer, e.g. recipe=proxy; merged with the sweep file's.",
        flags=("-o", "--option"), owner="trainer")
    trials: int = setting(
        40, count(1), "Total number of trials. [default: {default}]",
        takers=("run", "resume"), scope=Scope.CHECKED_APART)
    slots: int | str = setting(
        "auto", kinds.SLOTS,
        "Concurrent trials; auto: as many as fit on the cluster. [default: {default}]",
        takers=_ALL, scope=Scope.RUN)
    schedule: str = setting(
        "round", choice("round", "async"),
        "round: one config per subspace, then wait; async: refill free slots at once.")
    batch: int | None = setting(None, count(1), "Configs per round; 1 is sequential.")
    share: float = setting(1.0, kinds.SHARE, "Share of a round to wait for. [default: {default}]")
    deadline_s: float | None = setting(None, kinds.SECONDS, "Longest wait for a round, in seconds.")
    metric: str | None = setting(None, kinds.TEXT, "Metric of the trainer to optimise.")
    mode: Mode = setting("min", choice("min", "max"), "[default: the trainer's, else min]")
    objectives: list[str] = setting(
        list, kinds.OBJECTIVES,
        "Further objective, such as 'flops min', or an expression of results; up to three in all. "
        "Numbers of the trainer's summary are known before a training. Added to those of the sweep "
        "file; the first is a result of training, by default the metric.", flags=("--objective",))
    cpus_per_trial: float = setting(
        1, kinds.AMOUNT, "CPUs per trial. [default: {default}]", takers=_ALL,
        scope=Scope.RUN, resource="CPU")
    gpus_per_trial: float = setting(
        0, kinds.GPUS, "GPUs per trial; may be a fraction such as 0.5. [default: {default}]",
        takers=_ALL, scope=Scope.RUN, resource="GPU")
    resources: dict[str, float] = setting(
        dict, pairs(_AMOUNTS, metavar="NAME=AMOUNT"),
        "Custom Ray resource per trial, e.g. spot=0.001, which only some nodes have; merged with "
        "the sweep file's.", flags=("--resource",), scope=Scope.RUN)
    max_failures: int = setting(
        2, count(0), "Retries of a trial that crashes. [default: {default}]", scope=Scope.RUN)
    max_failures_in_a_row: int = setting(
        20, count(1), "Consecutive failures that stop it. [default: {default}]", scope=Scope.RUN)
    report_timeout_s: float | None = setting(
        None, kinds.TIMEOUT, "Retry a trial after this time without a report. [default: never]",
        takers=("run", "finalize"), scope=Scope.RUN)
    keep_checkpoints: int = setting(
        3, count(0), "Best trials with kept checkpoints. [default: {default}]", scope=Scope.RUN)
    constraints: list[str] = setting(
        list, kinds.LIMITS,
        "Limit on a number of the trainer's summary, e.g. 'parameters<=2e6'; added to those of "
        "the sweep file.", flags=("--constraint",))
    features: str | list[str] = setting(
        "none", kinds.FEATURES,
        "Numbers of the trainer's summary that the surrogate uses as features of configs; auto: "
        "those that the summary marks. [default: {default}]")
    repeats: int = setting(
        0, count(0, is_told=True),
        "Additional trainings of each of the best configs, with other seeds, beyond --trials; "
        "such configs are ranked by their mean. [default: {default}]", takers=("run", "resume"))
    repeat_top: int = setting(
        3, count(1, is_told=True), "Best configs to repeat. [default: 3]", takers=("run", "resume"))
    rungs: str | list[int] = setting(
        "off", kinds.RUNGS,
        "Steps of successive halving, such as 4,11,33,100: only the best configs are trained to "
        "the next one. auto: 1/27, 1/9, 1/3 and all of a training. --trials then counts full "
        "trainings. [default: {default}]")
    eta: int = setting(
        3, count(2, is_told=True), "With rungs: one in this many is promoted. [default: {default}]")
    keep_paused: int = setting(
        64, count(0),
        "With rungs: number of paused trials whose checkpoints are kept; the others can only be "
        "trained from the start. [default: {default}]", scope=Scope.RUN)
    time_limit_s: float | None = setting(
        None, kinds.DURATION, "Of this run, e.g. 90s, 30m, 12h.", takers=_ALL, scope=Scope.RUN)
    callbacks: list[str] = setting(
        list, kinds.CLASSES,
        "module:Class, a nasbo.Callback that the driver calls with rounds, reports and endings; "
        "added to the sweep file's.", flags=("--callback",), takers=_ALL, scope=Scope.RUN)
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
        "Address of a Ray cluster, or local for this machine, the default of a new sweep.",
        takers=_ALL, scope=Scope.CHECKED_APART)
    seed: int = setting(0, kinds.SEED, "Seed of the search.")
    storage_path: str | None = setting(
        None, kinds.TEXT,
        "Parent of folders that are not named: a path that all nodes share, or a URL.",
        takers=(), scope=Scope.CHECKED_APART)
    working_folder: str = setting(
        "", kinds.TEXT, "Folder of the trainer's module.", takers=(), scope=Scope.CHECKED_APART)
    provenance: dict[str, Any] = setting(
        dict, kinds.MAPPING, "The trainer's description of its data.",
        takers=(), scope=Scope.CHECKED_APART)
    # fmt: on

    def __post_init__(self) -> None:
        for name, declared in SETTINGS.items():
            declared.check(getattr(self, name))
        if not self.cpus_per_trial + self.gpus_per_trial > 0:
            raise SweepError("cpus_per_trial or gpus_per_trial must be above 0")
        parse_limits(self.constraints)
        if self.objectives:
            Objectives.parse(self.objectives)

    @property
    def needs(self) -> dict[str, float]:
        """Resources of one trial, by Ray's names."""
        own = {resource: getattr(self, name) for resource, name in OWN_RESOURCES.items()}
        return {name: amount for name, amount in {**own, **self.resources}.items() if amount}

    def notes(self) -> dict[str, Any]:
        """Values for the first line of the journal, besides the search's own settings."""
        names = ["trials", "schedule", "batch", "metric", "trainer", "trainer_options"]
        names += ["constraints", "repeats", "repeat_top", "provenance"]
        packages = ("nasbo", "ray", "torch", "gpytorch", "botorch", "numpy")
        versions = {name: metadata.version(name) for name in packages}
        versions["python"] = platform.python_version()
        return {**{name: getattr(self, name) for name in names}, "versions": versions}


def _declared() -> Iterator[Setting]:
    """Declarations of all fields, with their names, defaults and flags."""
    for item in fields(Sweep):
        flag = f"--{item.name.removesuffix('_s').replace('_', '-')}"
        found: Setting = item.metadata["setting"]
        flags = found.flags or (flag,)
        yield replace(found, name=item.name, default=item.default, flags=flags)


SETTINGS = {declared.name: declared for declared in _declared()}
PLACEMENT = [name for name, declared in SETTINGS.items() if declared.scope is Scope.RUN]
"""Settings about the machines and the patience of one run, which may differ between runs."""
MAY_DIFFER = {name for name, declared in SETTINGS.items() if declared.scope is not Scope.SWEEP}
"""Settings of where a sweep runs and how long, which may change without defining another sweep."""
MERGED = {one.name: one.owner for one in SETTINGS.values() if one.kind.joins == "keys"}
"""Settings that are mappings of options, with the setting that names their owner."""
LISTS = [name for name, declared in SETTINGS.items() if declared.kind.joins == "items"]
OWN_RESOURCES = {one.resource: one.name for one in SETTINGS.values() if one.resource}
"""Settings by Ray's names of the resources."""


def taken_by(command: str) -> list[Setting]:
    """The settings for which a command has flags."""
    return [declared for declared in SETTINGS.values() if command in declared.takers]


def parsed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Parse and check command-line options; those not given are left out."""
    settings = {}
    for name, word in given.items():
        if word not in (None, ()):
            settings[name] = SETTINGS[name].kind.parse(word)
            SETTINGS[name].check(settings[name])
    return settings


def read_settings(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Settings from a sweep file, or ``{"space": path}`` if the file is a space.

    Raises:
        SweepError: the file is neither, or has an unknown setting.
    """
    file = find_space_file(path)
    try:
        content = read_yaml(file.read_text(encoding="utf-8"))
    except UNREADABLE:
        content = None  # the space loader below reports the error with its line
    if not isinstance(content, dict) or not _is_sweep(content):
        load_space(file)
        return {"space": str(file)}
    check_file(file, content, SETTINGS, refused=["provenance"])
    if isinstance(begin := content.get("begin"), str):
        content["begin"] = str(file.parent / begin)
    return {**content, "space": _beside(file, content["space"])}


def _is_sweep(content: Mapping[Any, Any]) -> bool:
    return isinstance(content.get("space"), str)


def _beside(file: Path, space: str) -> str:
    """The space of a sweep file: relative to the file, or a shipped name."""
    near = file.parent / space
    return str(near if near.exists() else find_space_file(space))


def as_list(value: Any) -> Any:
    """A single text as a list; other values unchanged."""
    return [value] if isinstance(value, str) else value


def make_sweep(settings: Mapping[str, Any]) -> Sweep:
    """Make a sweep of settings; ``SweepError`` names the rule if one is broken."""
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
    """Constraints of a sweep on the trainer's summary of configs; ``None`` without any."""
    if not sweep.constraints:
        return None
    describe = TrainerSummary(sweep.trainer, sweep.trainer_options, sweep.working_folder)
    return Limits(parse_limits(sweep.constraints), describe)


def features_of(sweep: Sweep, space: Space) -> Features | None:
    """The numbers that a sweep tells its surrogate; ``None`` for none.

    Raises:
        NasboError: a number that the trainer's summary does not have.
    """
    folder = sweep.working_folder
    describe = TrainerSummary(sweep.trainer, sweep.trainer_options, folder)
    if sweep.features == "none":
        return _known_objectives(sweep, space, describe)
    tabulate = TrainerTable(sweep.trainer, sweep.trainer_options, folder)
    names = None if sweep.features == "auto" else tuple(sweep.features)
    features = Features(describe, names, tabulate if tabulate.is_there else None)
    return replace(features, names=features.names_in(space))


def _known_objectives(sweep: Sweep, space: Space, describe: TrainerSummary) -> Features | None:
    """Objectives that are known before a training, and what the summary marks beside them.

    Costs without such features draw a search to the cheapest configs, which it does not know to be
    bad; so the two belong together.
    """
    if not sweep.objectives:
        return None
    summary = describe(space.default_config())
    goal = Objectives.parse(sweep.objectives, numbers_of(summary))
    known = [name for one in goal if one.is_known for name in one.names]
    if not known:
        return None
    names = tuple(dict.fromkeys([*summary.get(MARKED, ()), *known]))
    tabulate = TrainerTable(sweep.trainer, sweep.trainer_options, sweep.working_folder)
    return Features(describe, names, tabulate if tabulate.is_there else None)
