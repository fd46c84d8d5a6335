"""Spaces as ``ConfigSpace.ConfigurationSpace``, with the values that configs have.

SMAC gets its ConfigSpace from ``nasbo.methods.smac``: there values are numbers.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from nasbo.interchange.listing import ALWAYS, Condition, Entry, Translation, listing_of, short_name
from nasbo.interchange.packages import need
from nasbo.space import Parameter, Space
from nasbo.space.kinds import Number

PURPOSE = "a space of ConfigSpace"
META = "nasbo"
"""Key of a hyperparameter's meta data, with what only nasbo says of it."""


def to_config_space(space: Space) -> tuple[Any, Translation]:
    """A space as ``ConfigSpace.ConfigurationSpace``, and its names there.

    Each place of a list is a hyperparameter of its own, such as ``units[1]``.
    """
    kinds = need("ConfigSpace", PURPOSE, "configspace")
    entries, translation = listing_of(space)
    found = kinds.ConfigurationSpace(name=short_name(space))
    made = {one.name: _hyperparameter(kinds, one, at) for at, one in enumerate(entries)}
    parameters = {one.name: one.parameter for one in entries}
    conditional = [one for one in entries if one.exists != ALWAYS]
    found.add(*made.values(), *(_condition(kinds, one, made, parameters) for one in conditional))
    return found, translation


def config_space_text(space: Space) -> str:
    """The JSON text of a space, as ConfigSpace reads and writes it."""
    found, _ = to_config_space(space)
    text = io.StringIO()
    found.to_json(text, indent=2)
    return f"{text.getvalue()}\n"


def _hyperparameter(kinds: Any, entry: Entry, place: int) -> Any:
    one = entry.parameter
    own: dict[str, Any] = {"type": one.kind, "place": place}
    given: dict[str, Any] = {"meta": {META: own}}
    if one.has_default:
        own["has_default"], given["default_value"] = True, one.default
    if isinstance(one, Number) and one.n_levels != 1:
        low, high, log = one.flat_range
        if one.is_continuous:
            return kinds.UniformFloatHyperparameter(entry.name, low, high, log=log, **given)
        return kinds.UniformIntegerHyperparameter(entry.name, int(low), int(high), log=log, **given)
    values = [*map(one.value_at, range(one.n_levels))]
    if one.is_ordered and len(values) > 1:
        return kinds.OrdinalHyperparameter(entry.name, values, **given)
    return kinds.CategoricalHyperparameter(entry.name, values, **given)


def _condition(
    kinds: Any, entry: Entry, made: Mapping[str, Any], parameters: Mapping[str, Parameter]
) -> Any:
    def held(one: Condition) -> Any:
        values = [parameters[one.parent].value_at(level) for level in sorted(one.levels)]
        return kinds.InCondition(made[entry.name], made[one.parent], values)

    some = [[held(one) for one in conditions] for conditions in entry.exists]
    each = [kinds.AndConjunction(*one) if len(one) > 1 else one[0] for one in some]
    return kinds.OrConjunction(*each) if len(each) > 1 else each[0]
