"""Spaces of ConfigSpace, read from its objects and its JSON files."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from nasbo.errors import SpaceError
from nasbo.interchange.config_space import META, PURPOSE
from nasbo.interchange.grow import MAX_LEVELS, Grown, grow
from nasbo.interchange.inner_names import inner_names
from nasbo.interchange.listing import ALWAYS, Alternatives, Condition, Entry, united
from nasbo.interchange.packages import need
from nasbo.space import Parameter, Value
from nasbo.space.kinds import Choice, Integer, Ordinal, PowerOfTwo, Real

Comparison = Callable[[int | float, int | float], bool]
_COMPARISONS: dict[str, Comparison] = {
    "EqualsCondition": lambda own, other: own == other,
    "NotEqualsCondition": lambda own, other: own != other,
    "LessThanCondition": lambda own, other: own < other,
    "GreaterThanCondition": lambda own, other: own > other,
}


def read_config_space(text: str, source: str = "space") -> Grown:
    """The space of a ConfigSpace's JSON text.

    Raises:
        SpaceError: it is none, or its conditions expand to too many parameters.
    """
    kinds = need("ConfigSpace", PURPOSE, "configspace")
    try:
        plain = json.loads(text)
        if not isinstance(plain, dict) or "hyperparameters" not in plain:
            raise ValueError("it has no hyperparameters")
        found = kinds.ConfigurationSpace.from_json(io.StringIO(text))
    except Exception as error:  # ConfigSpace raises whatever a wrong file leads to
        raise SpaceError(f"{source}: is no space of ConfigSpace: {error}") from error
    return from_config_space(found, source)


def from_config_space(found: Any, source: str = "space") -> Grown:
    """The space of a ``ConfigSpace.ConfigurationSpace``."""
    inner = inner_names(found)
    losses: list[str] = []
    parameters: dict[str, Parameter] = {}
    for one in sorted(found.values(), key=_place):
        parameters[one.name] = _with_default(_parameter(inner[one.name], one), one)
        losses += _weights(one)
    exists = dict.fromkeys(parameters, ALWAYS)
    for condition in found.conditions:
        name = condition.child.name
        exists[name] = _both(exists[name], _alternatives(condition, parameters))
    losses += [
        f"forbidden: {one}; such configs are in the space" for one in found.forbidden_clauses
    ]
    entries = [Entry(name, one, exists[name]) for name, one in parameters.items()]
    grown = grow(entries, source)
    renamed = [f"{name!r} is {new!r}" for name, new in inner.items() if name != new]
    return replace(grown, losses=(*losses, *grown.losses), notes=(*renamed, *grown.notes))


def _place(one: Any) -> float:
    """Where it stood in nasbo's own document: ConfigSpace sorts by name."""
    place = _own(one).get("place")
    return place if isinstance(place, int) else math.inf


def _own(one: Any) -> Mapping[str, Any]:
    """What only nasbo says of a hyperparameter."""
    found = (one.meta or {}).get(META)
    return found if isinstance(found, dict) else {}


def _parameter(name: str, one: Any) -> Parameter:
    """The parameter of a hyperparameter, without its default."""
    if hasattr(one, "lower"):
        whole = isinstance(_plain(one.lower), int)
        low, high = _plain(one.lower), _plain(one.upper)
        return (Integer if whole else Real)(name, low=low, high=high, log=bool(one.log))
    values: Any = next(
        getattr(one, key) for key in ("choices", "sequence", "value") if hasattr(one, key)
    )
    listed = tuple(map(_plain, values if isinstance(values, list | tuple) else [values]))
    kind = _own(one).get("type")
    if kind == Integer.kind and len(listed) == 1 and type(listed[0]) is int:
        return Integer(name, low=listed[0], high=listed[0])
    if kind == PowerOfTwo.kind and (powers := _powers(name, listed)) is not None:
        return powers
    is_ordered = hasattr(one, "sequence") or kind == Ordinal.kind
    return (Ordinal if is_ordered else Choice)(name, values=listed)


def _powers(name: str, values: Sequence[Value]) -> Parameter | None:
    """Values as successive powers of two, if that is what they are."""
    if any(type(one) is not int or one < 1 for one in values):
        return None
    exponents = [int(one).bit_length() - 1 for one in values]  # type: ignore[arg-type]
    low, high = exponents[0], exponents[-1]
    is_such = [2**one for one in range(low, high + 1)] == list(values)
    return PowerOfTwo(name, low=low, high=high) if is_such else None


def _with_default(parameter: Parameter, one: Any) -> Parameter:
    """With the default, unless it is the one that ConfigSpace itself chooses."""
    usual = {
        "UniformFloatHyperparameter": ("lower", "upper", "log"),
        "UniformIntegerHyperparameter": ("lower", "upper", "log"),
        "CategoricalHyperparameter": ("choices", "weights"),
        "OrdinalHyperparameter": ("sequence",),
    }.get(type(one).__name__)
    if usual is None or parameter.n_levels == 1:
        return parameter
    given = {key: getattr(one, key) for key in usual}
    is_usual = type(one)(one.name, **given).default_value == one.default_value
    if is_usual and not _own(one).get("has_default"):
        return parameter
    default = parameter.canonical(_plain(one.default_value))
    return replace(parameter, default=default, has_default=True)


def _weights(one: Any) -> list[str]:
    """What is said of how likely values are."""
    name = type(one).__name__.removesuffix("Hyperparameter")
    if name.startswith(("Normal", "Beta")):
        return [f"{one.name!r} is {name}: it is uniform over its range"]
    if getattr(one, "weights", None) is not None:
        return [f"{one.name!r} has weights: its values are equally likely"]
    return []


def _alternatives(condition: Any, parameters: Mapping[str, Parameter]) -> Alternatives:
    """When a condition of ConfigSpace holds."""
    if hasattr(condition, "components"):
        parts = [_alternatives(one, parameters) for one in condition.components]
        if type(condition).__name__ == "OrConjunction":
            return united([some for part in parts for some in part])
        found = parts[0]
        for part in parts[1:]:
            found = _both(found, part)
        return found
    parent = condition.parent.name
    parameter = parameters[parent]
    if parameter.is_continuous or parameter.n_levels > MAX_LEVELS:
        return ((Condition(parent, frozenset()),),)  # reported where the tree is grown
    if type(condition).__name__ == "InCondition":
        levels = {parameter.level_of(_plain(value)) for value in condition.values}
    else:
        holds = _COMPARISONS[type(condition).__name__]
        wanted = parameter.level_of(_plain(condition.value))
        levels = {level for level in range(parameter.n_levels) if holds(level, wanted)}
    return ((Condition(parent, frozenset(levels)),),)


def _both(one: Alternatives, other: Alternatives) -> Alternatives:
    """When both hold."""
    return united([_joined((*left, *right)) for left, right in product(one, other)])


def _joined(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Conditions, one for each parent."""
    levels: dict[str, frozenset[int]] = {}
    for one in conditions:
        levels[one.parent] = levels.get(one.parent, one.levels) & one.levels
    return tuple(Condition(parent, some) for parent, some in levels.items())


def _plain(value: Any) -> Any:
    """A value without numpy around it."""
    return value.item() if hasattr(value, "item") else value
