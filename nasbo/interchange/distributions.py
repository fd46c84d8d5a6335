"""Distributions of Optuna as parameters, and the other way round."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from nasbo.errors import SpaceError, shorten
from nasbo.interchange.packages import need
from nasbo.space import Parameter
from nasbo.space.kinds import Choice, Integer, Number, Ordinal, Real
from nasbo.space.ranges import MAX_CHOICES

PURPOSE = "a space of Optuna"


def distribution_of(parameter: Parameter) -> Any:
    """The distribution of a parameter's values; lists and powers of two become categories."""
    kinds = need("optuna.distributions", PURPOSE, "optuna")
    if isinstance(parameter, Number):
        low, high, log = parameter.flat_range
        if parameter.is_continuous:
            return kinds.FloatDistribution(float(low), float(high), log=log)
        return kinds.IntDistribution(int(low), int(high), log=log)
    return kinds.CategoricalDistribution([*map(parameter.value_at, range(parameter.n_levels))])


def parameter_of(name: str, distribution: Any) -> tuple[Parameter, str]:
    """The parameter of a distribution, and what it does not say, in words.

    Raises:
        SpaceError: choices that no config can hold.
    """
    if hasattr(distribution, "choices"):
        return Choice(name, values=_plain(name, distribution.choices)), ""
    low, high, step = distribution.low, distribution.high, distribution.step
    is_whole = isinstance(low, int)
    if low == high:
        return Choice(name, values=(low,)), ""
    if distribution.log or step is None or (is_whole and step == 1):
        kind = Integer if is_whole else Real
        return kind(name, low=low, high=high, log=distribution.log), ""
    n = round((high - low) / step) + 1
    if n > MAX_CHOICES:
        told = f"{name!r} has {n} values in steps of {step:g}: at most {MAX_CHOICES} can be listed"
        return (Integer if is_whole else Real)(name, low=low, high=high), f"{told}, so it has none"
    exact = (Decimal(str(low)) + at * Decimal(str(step)) for at in range(n))
    return Ordinal(name, values=tuple(int(v) if is_whole else float(v) for v in exact)), ""


def _plain(name: str, choices: Any) -> tuple[Any, ...]:
    for one in choices:
        is_number = isinstance(one, int | float) and math.isfinite(one)
        if one is not None and not is_number and not isinstance(one, str):
            rule = f"a choice of {name!r} must be text, a number, true, false or null"
            raise SpaceError(f"{rule}, got {shorten(one)}")
    return tuple(choices)


def hull(old: Any, new: Any) -> Any:
    """The distribution that holds what either of two of one parameter holds.

    Optuna lets the ends of a range change from trial to trial, but not its kind, nor choices.
    """
    if old == new or hasattr(old, "choices") or hasattr(new, "choices"):
        return new
    low, high = min(old.low, new.low), max(old.high, new.high)
    is_aligned = old.step == new.step and old.step and _is_whole((old.low - new.low) / old.step)
    if is_aligned:
        return type(new)(low, high, log=new.log, step=new.step)
    return type(new)(low, high, log=new.log)


def _is_whole(number: float) -> bool:
    return abs(number - round(number)) < 1e-8
