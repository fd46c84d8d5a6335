"""Choice of one trial of a front: by limits, by its knee, or by MnasNet's formula."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nasbo.errors import SweepError
from nasbo.history import Trial, View
from nasbo.history.front import knee, straight
from nasbo.limits import numbers_of, parse_limits

if TYPE_CHECKING:
    from nasbo.sweeps.folder import SweepFolder

MNASNET_WEIGHT = -0.07
"""Exponent of the cost in MnasNet's soft constraint (Tan et al., CVPR 2019)."""
_MNASNET = re.compile(r"mnasnet:\s*([\w.]+)\s*=\s*(\S+)")
WAYS = "'params<=2e6', 'knee' or 'mnasnet:latency_ms=80'"

Numbers = Callable[[Trial], Mapping[str, float]]


def pick(sweep: SweepFolder, way: str) -> Trial:
    """The trial of a sweep that a way of choosing selects.

    Args:
        sweep: that has results.
        way: ``params<=2e6``, the best value of the first objective inside such limits, separated by
            commas; ``knee``, where the front bends; ``mnasnet:latency_ms=80``, the largest value
            times (latency / 80) to the power of -0.07.

    Raises:
        SweepError: an unknown way, a number that no trial has, or no trial inside the limits.
    """
    history = sweep.history
    if history.best is None:
        raise SweepError(f"{sweep.name}: nothing has finished yet")
    numbers = _numbers_of(sweep)
    if way.strip() == "knee":
        return _at_knee(history)
    if match := _MNASNET.fullmatch(way.strip()):
        return _by_mnasnet(history, numbers, match[1], match[2])
    if re.search(r"[<>]", way):
        return _inside(history, numbers, way)
    raise SweepError(f"--pick must be {WAYS}, got {way!r}")


def _numbers_of(sweep: SweepFolder) -> Numbers:
    """Numbers of a trial: its metrics, and the trainer's summary where that is known here."""

    def numbers(trial: Trial) -> Mapping[str, float]:
        try:
            known = numbers_of(sweep.trainer.describe(trial.config, sweep.settings.trainer_options))
        except Exception:  # a user's code, which may be on other machines only
            known = {}
        return {**known, **numbers_of(trial.metrics)}

    return numbers


def _inside(history: View, numbers: Numbers, way: str) -> Trial:
    """The best trial inside limits."""
    limits = parse_limits(way.split(","))
    refusals = []
    for trial in history.ranked():
        told = numbers(trial)
        broken = next((words for one in limits if (words := one.violation(told))), None)
        if broken is None:
            return trial
        refusals.append(f"trial {trial.id}: {broken}")
    raise SweepError(f"no trial is inside {way!r}; {refusals[0]}")


def _at_knee(history: View) -> Trial:
    if len(history.objectives) == 1:
        raise SweepError("--pick knee needs several objectives, but the sweep has one")
    front = history.front
    goal = history.objectives
    found = [goal.values(trial) for trial in front]
    values = np.array([one for one in found if one is not None])
    is_log = [False] * len(goal) if history.reference is None else history.reference.is_log
    return front[knee(goal.to_scores(straight(values, is_log)))]


def _by_mnasnet(history: View, numbers: Numbers, name: str, target: str) -> Trial:
    if history.mode != "max":
        raise SweepError(f"mnasnet needs an objective to maximise, got {history.objectives.first}")
    try:
        at = float(target)
    except ValueError:
        at = math.nan
    if not 0 < at < math.inf:
        raise SweepError(f"mnasnet needs a target above 0 such as latency_ms=80, got {target!r}")
    ranked = history.ranked()
    costs = [numbers(trial).get(name, math.nan) for trial in ranked]
    scores = [_soft(trial, cost / at) for trial, cost in zip(ranked, costs, strict=True)]
    if not any(score > -math.inf for score in scores):
        known = ", ".join(numbers(ranked[0])) or "none"
        raise SweepError(f"no trial has a number {name!r} above 0; known: {known}")
    return ranked[int(np.argmax(scores))]


def _soft(trial: Trial, ratio: float) -> float:
    """Value times a power of the cost relative to its target."""
    value = trial.expected
    return -math.inf if value is None or not ratio > 0 else value * ratio**MNASNET_WEIGHT


def front_rows(history: View) -> Sequence[tuple[Trial, tuple[float, ...]]]:
    """The trials of the front with their values, the best value of the first objective first."""
    found = [(trial, history.objectives.values(trial)) for trial in history.front]
    return [(trial, values) for trial, values in found if values is not None]
