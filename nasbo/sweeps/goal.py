"""Objectives of a sweep: which of them its trainer trains, and which are known before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nasbo.errors import NasboError, SweepError
from nasbo.history import Objectives
from nasbo.limits import numbers_of
from nasbo.search.told import check_rungs
from nasbo.space import Space
from nasbo.sweeps.settings import Sweep
from nasbo.trainer import Trainer, TrainerSummary


def with_objectives(
    sweep: Sweep, given: Mapping[str, Any], space: Space, trainer: Trainer
) -> Sweep:
    """The sweep with all of its objectives, the trained one first.

    Objectives that are all known before a training are added to the trainer's metric. A single one
    becomes the metric and mode.

    Args:
        sweep: its metric and mode are the trainer's if none were given.
        given: settings of the sweep file and the command line.
        space: of the sweep.
        trainer: of the sweep.
    """
    if not sweep.objectives:
        return sweep
    numbers = _summary(sweep, space, trainer)
    goal = Objectives.parse(sweep.objectives, numbers)
    if _is_added(goal, given.get("metric")):
        if sweep.metric is None:
            raise SweepError(f"--metric must be given beside the objectives {goal}")
        goal = Objectives.parse([f"{sweep.metric} {sweep.mode}", *map(str, goal)], numbers)
    goal.require_trained()
    first = goal.first
    if given.get("mode") not in (None, first.mode):
        raise SweepError(f"mode {given['mode']!r} contradicts the objective '{first}'")
    if sweep.warm_start is not None and goal.n_trained > 1:
        raise SweepError(f"warm_start takes over one trained objective, not those of {goal}")
    try:
        check_rungs(goal, None if sweep.rungs == "off" else sweep.rungs)
    except NasboError as error:
        raise SweepError(str(error)) from error
    texts = [str(one) for one in goal] if len(goal) > 1 else []
    return replace(sweep, metric=first.metric, mode=first.mode, objectives=texts)


def _is_added(goal: Objectives, metric: str | None) -> bool:
    """Whether the metric comes before the objectives that were named."""
    if metric is not None:
        return goal.first.metric != metric
    if goal.first.is_known and goal.n_trained:
        raise SweepError(f"the first objective must be a result of training, got {goal}")
    return goal.first.is_known


def _summary(sweep: Sweep, space: Space, trainer: Trainer) -> dict[str, float]:
    """The numbers that the trainer knows before a training; none without a summary."""
    if trainer.summary is None:
        return {}
    describe = TrainerSummary(sweep.trainer, sweep.trainer_options, sweep.working_folder)
    try:
        return numbers_of(describe(space.default_config()))
    except Exception as error:  # a user's function may raise anything
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise SweepError(f"{sweep.trainer} cannot describe a config here: {reason}") from error
