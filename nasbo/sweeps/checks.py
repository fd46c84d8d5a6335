"""Checks of a sweep before it starts or resumes, from its file and the command line."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import MISSING, asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from nasbo.errors import NasboError, SweepError
from nasbo.history import Objectives, json_safe
from nasbo.methods import make_method
from nasbo.methods.feasible import first_allowed
from nasbo.methods.registry import check_method_options
from nasbo.search.goal import check_goal
from nasbo.search.told import check_method
from nasbo.shipped import check_own_name
from nasbo.space import Space, load_space
from nasbo.space.difference import first_difference
from nasbo.storage.location import is_url
from nasbo.sweeps.begin import begin_configs
from nasbo.sweeps.callbacks import callback_classes
from nasbo.sweeps.folder import SweepFolder
from nasbo.sweeps.forecast import SECONDS
from nasbo.sweeps.goal import with_objectives
from nasbo.sweeps.past import read_past
from nasbo.sweeps.settings import (
    LISTS,
    MAY_DIFFER,
    MERGED,
    PLACEMENT,
    SETTINGS,
    Sweep,
    as_list,
    features_of,
    limits_of,
    make_sweep,
    read_settings,
)
from nasbo.trainer import DATA, Trainer, TrainerSummary, cause_of, load_trainer

LARGE = {"acc", "accuracy", "auc", "auroc", "f1", "r2", "precision", "recall", "reward", "score"}
"""Words in names of metrics that are usually maximised."""
N_CHECKED = 100
"""Number of random configs that are tried to see whether the trainer can build any."""


def prepare(file: str, given: Mapping[str, Any], console: Console) -> tuple[Sweep, Space]:
    """The settings of a new sweep, with a usable trainer, space and constraints."""
    held = read_settings(file)
    settings = merged(held, given)
    for name, owner in MERGED.items():
        if held.get(name) and owner and _is_replaced(owner, held, given):
            told = f"{name} of {file} are for the {owner} {held.get(owner)}: left out"
            console.print(told, highlight=False, markup=False, soft_wrap=True)
    sweep = make_sweep({**settings, "working_folder": os.getcwd()})
    if settings.get("trainer"):  # a name given by the user
        check_own_name(sweep.trainer, sweep.working_folder)
    trainer = load_trainer(sweep.trainer)
    sweep = replace(
        sweep,
        space=str(Path(sweep.space).resolve()),
        metric=sweep.metric or trainer.metric,
        mode="max" if (settings.get("mode") or trainer.mode) == "max" else "min",
        warm_start=_absolute(sweep.warm_start, sweep.working_folder),
    )
    space = load_space(sweep.space)
    check_options(sweep, trainer)
    callback_classes(sweep)
    sweep = replace(sweep, rungs=_resolved_rungs(sweep, trainer, console))
    named = sweep.objectives
    sweep = with_objectives(sweep, settings, space, trainer)
    if not settings.get("mode") and str(sweep.metric) + f" {sweep.mode}" not in named:
        _check_metric(sweep, trainer)
    _check_constraints(sweep, space, trainer, console)
    _check_features(sweep, space, trainer)
    return replace(sweep, begin=begin_configs(sweep, file, space, trainer)), space


def _resolved_rungs(sweep: Sweep, trainer: Trainer, console: Console) -> str | list[int]:
    """The rungs as steps, or ``off``, also if the training is too short for rungs."""
    try:
        rungs = trainer.rungs(sweep.rungs, sweep.eta, sweep.trainer_options)
    except NasboError as error:
        raise SweepError(str(error)) from error
    if rungs is None:
        if sweep.rungs == "auto":
            console.print("rungs: off, a full training is too short for any", highlight=False)
        return "off"
    if not rungs.resumes:
        told = (
            f"rungs: {sweep.trainer} does not say RESUMES = True: a trial that goes on is trained "
            "from the beginning, and charged so"
        )
        console.print(told, highlight=False, markup=False, soft_wrap=True)
    return list(rungs.steps)


def merged(held: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a sweep file overridden by those of the command line.

    Mappings are merged key by key, lists are concatenated, all others are replaced. Options of a
    method or trainer that is replaced are dropped.
    """
    settings = {**held, **given}
    for name, owner in MERGED.items():
        before = {} if owner and _is_replaced(owner, held, given) else held.get(name, {})
        now = given.get(name, {})
        is_mapping = isinstance(before, Mapping) and isinstance(now, Mapping)
        settings[name] = {**before, **now} if is_mapping else settings[name]
    for name in LISTS:
        lists = [as_list(some.get(name, [])) for some in (held, given)]
        if all(isinstance(some, list) for some in lists):
            settings[name] = lists[0] + lists[1]
    return settings


def _is_replaced(owner: str, held: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether another method or trainer is given than that of the sweep file."""
    default = SETTINGS[owner].default
    before = held.get(owner, None if default is MISSING else default)
    return before is not None and given.get(owner, before) != before


def _absolute(name: str | None, folder: str) -> str | None:
    """Another sweep's folder as a URL or absolute path, which is valid wherever the driver runs."""
    if name is None or is_url(name):
        return name
    return os.path.abspath(os.path.join(folder, os.path.expanduser(name)))


def check_search(sweep: Sweep, space: Space) -> None:
    """Raise early if the sweep could not start: a bad method, trainer, or past sweep."""
    check_method(sweep.method)
    check_method_options(sweep.method, sweep.method_options)
    make_method(sweep.method, space, sweep.seed, **sweep.method_options)
    _check_configs(sweep, space, load_trainer(sweep.trainer))
    read_past(sweep, space)


def placement_of(sweep: Sweep) -> dict[str, Any]:
    """Settings that a resumed run takes from the command line instead of the folder."""
    placed = {name: getattr(sweep, name) for name in PLACEMENT}
    return placed if sweep.address is None else {**placed, "address": sweep.address}


def check_same(folder: Path, sweep: Sweep, space: Space) -> None:
    """Raise if settings that define the sweep differ from those of its folder."""
    held = SweepFolder(folder)
    if held.space.fingerprint() != space.fingerprint():
        difference = first_difference(held.space.to_dict(), space.to_dict())
        raise SweepError(
            f"{held.name} holds a sweep over another space: {difference}; name another --dir"
        )
    before, now = asdict(held.settings), asdict(sweep)
    before["warm_start"] = _absolute(before["warm_start"], before["working_folder"])
    for name in sorted(before.keys() - MAY_DIFFER):
        if before[name] != now[name]:
            raise SweepError(
                f"{held.name} holds a sweep with {name} = {before[name]!r}, not "
                f"{now[name]!r}: name another --dir, or leave {name} as it was"
            )


def check_options(sweep: Sweep, trainer: Trainer) -> None:
    """Raise early for options with which no trial can be trained."""
    try:
        if trainer.check_options is not None:
            trainer.check_options(sweep.trainer_options)
    except Exception as error:
        raise SweepError(f"options of {sweep.trainer}: {error}") from error


def _check_configs(sweep: Sweep, space: Space, trainer: Trainer) -> None:
    """Raise if the trainer can build none of many random configs, instead
    of failing trial by trial.
    """
    rng, n_drawn = np.random.default_rng(0), max(N_CHECKED, sweep.max_failures_in_a_row)
    for _ in range(n_drawn):
        refusal: Exception | None = None
        try:
            trainer.check_config(space.sample(rng), sweep.trainer_options)
        except Exception as error:  # a user's function may raise anything
            refusal = error
        if refusal is None or cause_of(refusal) == DATA:  # maybe only the workers have the data
            return
    raise SweepError(f"{sweep.trainer} refuses all of {n_drawn} drawn configs: {refusal}")


def prepare_data(sweep: Sweep, console: Console) -> None:
    """Prepare the data before Ray starts, if trials run on this machine.

    Raises:
        SweepError: the trainer's ``prepare`` failed, with its message.
    """
    trainer = load_trainer(sweep.trainer)
    if trainer.prepare is None or cluster_of(sweep):
        return
    console.print("making the data ready ...", highlight=False)
    try:
        trainer.prepare(sweep.trainer_options)
    except Exception as error:  # a user's function may raise anything
        raise SweepError(f"data of {sweep.trainer}: {error}") from error


def cluster_of(sweep: Sweep) -> str:
    """Address of the cluster on which trials run; "" if they run on this machine."""
    address = sweep.address or os.environ.get("RAY_ADDRESS") or "local"
    return "" if address == "local" else address


def local_cpus(sweep: Sweep) -> int:
    """Number of CPUs of a local Ray: the cores, or more if the requested slots need more."""
    asked = sweep.slots * sweep.cpus_per_trial if isinstance(sweep.slots, int) else 0
    return max(os.cpu_count() or 1, math.ceil(asked))


def _check_metric(sweep: Sweep, trainer: Trainer) -> None:
    """Raise for a metric other than the trainer's own if no mode is given for it."""
    if trainer.metric is None or trainer.mode is None:
        if set(re.split(r"[^a-z0-9]+", (sweep.metric or "").lower())) & LARGE:
            raise SweepError(
                f"mode must be given for the metric {sweep.metric}: say --mode max or --mode min "
                "(without it, it would be made small)"
            )
        return
    own = {trainer.metric}
    if trainer.final_metric is not None:
        own.add(trainer.final_metric(sweep.trainer_options))
    if sweep.metric not in own:
        raise SweepError(
            f"mode must be given for the metric {sweep.metric}: say --mode min or --mode max "
            f"({sweep.trainer} says only that {trainer.metric} is to be {trainer.mode})"
        )


def _check_constraints(sweep: Sweep, space: Space, trainer: Trainer, console: Console) -> None:
    """Raise for an unknown quantity, or for constraints that no config satisfies."""
    limits = limits_of(sweep)
    if limits is None:
        return
    if trainer.summary is None:
        raise SweepError(f"constraints need a function summary(config) beside {sweep.trainer}")
    config = space.sample(np.random.default_rng(0))
    if None in limits.values(config):
        calibrated(sweep, space, console)  # seconds can only be predicted after a measurement
    if None in limits.values(config):
        raise SweepError(f"constraints: {limits.violation(config)}")
    first_allowed(space, limits)


def _check_features(sweep: Sweep, space: Space, trainer: Trainer) -> None:
    """Numbers that the summary lacks, or that the method does not use, are said beforehand."""
    if sweep.features == "none" and not sweep.objectives:
        return
    if trainer.summary is None and sweep.features != "none":
        raise SweepError(f"features need a function summary(config) beside {sweep.trainer}")
    features = features_of(sweep, space) if trainer.summary is not None else None
    method = make_method(sweep.method, space, sweep.seed, **sweep.method_options)
    known = () if features is None else features(space.default_config())
    goal = Objectives.of(sweep.mode, sweep.metric)
    if sweep.objectives:
        goal = Objectives.parse(sweep.objectives, known)
    check_goal(method, sweep.method, goal, features)


def calibrated(sweep: Sweep, space: Space, console: Console) -> TrainerSummary:
    """The trainer's summary, after a speed measurement of this machine if that is missing."""
    trainer = load_trainer(sweep.trainer)
    describe = TrainerSummary(sweep.trainer, sweep.trainer_options, sweep.working_folder)
    known = _described(sweep, space, describe)
    if trainer.calibrate is not None:
        if SECONDS not in known:
            console.print("measuring the speed of this machine ...", highlight=False)
        trainer.calibrate(sweep.trainer_options)
    return describe


def _described(sweep: Sweep, space: Space, describe: TrainerSummary) -> Mapping[str, Any]:
    """The summary of one config; raises if the trainer cannot describe it here."""
    try:
        return describe(space.sample(np.random.default_rng(0)))
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise SweepError(f"{sweep.trainer} cannot describe a config here: {reason}") from error


def provenance_of(sweep: Sweep, console: Console) -> dict[str, Any]:
    """The trainer's provenance of its data; empty if this machine does not have the data."""
    trainer = load_trainer(sweep.trainer)
    if trainer.provenance is None:
        return {}
    try:
        return dict(json_safe(trainer.provenance(sweep.trainer_options)))
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        console.print(f"the data's hash is not known on this machine: {reason}", highlight=False)
        return {}


def check_provenance(folder: Path, sweep: Sweep, console: Console) -> None:
    """Raise if the data or the split differ from those at the start of the sweep."""
    if sweep.provenance:
        compare_provenance(folder, sweep.provenance, provenance_of(sweep, console))


def compare_provenance(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise ``SweepError`` if any value that is known for both times differs."""
    for name in sorted(now.keys() & before.keys()):
        if now[name] != before[name]:
            raise SweepError(
                f"{folder}: began with {name} = {before[name]}, the data here have "
                f"{now[name]}: its results would not be comparable"
            )
