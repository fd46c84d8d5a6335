"""Objectives of a search, and the values that trials are told to have."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

from nasbo.errors import NasboError, shorten
from nasbo.features import Features
from nasbo.gp.known_values import KnownValues
from nasbo.history import History, Mode, Objectives
from nasbo.history import events as ev
from nasbo.limits import numbers_of
from nasbo.methods import Method
from nasbo.methods.fronts import is_reference_due, reference_of
from nasbo.search.schedule import design_left
from nasbo.space import Config, Space

logger = logging.getLogger(__name__)
Texts = Objectives | str | Sequence[str]


def goal_of(
    texts: Texts | None,
    mode: Mode,
    metric: str | None,
    features: Features | None,
    space: Space,
) -> Objectives:
    """The objectives of a search.

    Args:
        texts: such as ``["val_accuracy max", "flops min"]``; ``None`` for one metric.
        mode: of the one metric.
        metric: its name.
        features: numbers that are known before a training; an objective made of them is known.
        space: whose default config shows which numbers there are.
    """
    if texts is None:
        return Objectives.of(mode, metric)
    if mode != "min":
        raise NasboError(f"mode is part of objectives, such as 'accuracy max'; got {mode!r} too")
    known = () if features is None else numbers_of(features.describe(space.default_config()))
    return Objectives.parse(texts, known).require_trained()


def check_goal(
    method: Method, name: str, objectives: Objectives, features: Features | None
) -> None:
    """Raise where a method is told objectives or numbers that it would not look at."""
    if len(objectives) > 1 and not method.takes_several:
        raise NasboError(
            f"several objectives are searched by attnbo (preset 'default'), evolution and random, "
            f"not by {name!r}: make the others constraints, or one expression"
        )
    is_needed = any(one.is_known or one.names != (one.metric,) for one in objectives)
    if features is not None and not method.uses_features and not is_needed:
        raise NasboError(f"features are used by attnbo (preset 'default') only, not by {name!r}")


def known_numbers(
    objectives: Objectives, features: Features | None, config: Config
) -> dict[str, float]:
    """The numbers of a config, known before its training, that objectives are made of."""
    is_plain = len(objectives) == 1 and objectives.first.names == (objectives.first.metric,)
    if features is None or is_plain:
        return {}
    try:
        numbers = features(config)
    except Exception as error:  # a user's function may raise anything
        logger.warning("no numbers of %s: %s: %s", config, type(error).__name__, error)
        return {}
    wanted = dict.fromkeys(name for one in objectives for name in one.names)
    return {name: numbers[name] for name in wanted if name in numbers}


def told_values(
    objectives: Objectives,
    value: float | Mapping[str, Any] | None,
    metrics: Mapping[str, Any] | None,
    known: Mapping[str, float],
    is_finished: bool,
) -> tuple[Any, dict[str, Any]]:
    """The value of the first objective and the metrics, with the known numbers filled in.

    Args:
        objectives: of the search.
        value: of the first objective, or numbers by name.
        metrics: further results.
        known: numbers that were known before the training; they win.
        is_finished: whether all trained objectives must be there.
    """
    filled = dict(metrics or {})
    if isinstance(value, Mapping) and objectives != Objectives.of(objectives.first.mode):
        filled |= value
        value = objectives.first.value_in({**filled, **known})
        if value is None and is_finished:
            told = ", ".join(map(str, filled)) or "nothing"
            raise NasboError(f"tell needs {objectives.first.metric!r}, got {told}")
    filled |= known
    is_finished = is_finished and not _is_diverged(value)
    if is_finished and (missing := objectives.lacking(filled)):
        told = ", ".join(map(str, filled)) or shorten(value)
        raise NasboError(f"tell needs all objectives, {missing[0]!r} too; got {told}")
    further = [one.value_in(filled) for one in objectives.further] if is_finished else []
    has_diverged = any(not math.isfinite(one) for one in further if one is not None)
    return (math.nan if has_diverged else value), filled


def _is_diverged(value: Any) -> bool:
    """Whether a value is nan or infinite."""
    return isinstance(value, float) and not math.isfinite(value)


def due_reference(history: History, features: Features | None) -> list[ev.ReferenceSet]:
    """The reference point as an event, once the design has ended."""
    if not is_reference_due(history, design_left(history)):
        return []
    is_known = features is not None and any(one.is_known for one in history.objectives)
    known = KnownValues(features, history.objectives) if is_known and features else None
    found = reference_of(history, known)
    return [] if found is None else [ev.ReferenceSet(values=found.values, is_log=found.is_log)]
