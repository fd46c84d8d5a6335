"""Neighbourhood of a config: the configs that differ from it by one change."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from nasbo.space import Config, Coordinate, Parameter, Space, Value
from nasbo.space.neighbours import complete, values_of

STEPS = (0.2, 0.05, 0.0125)
"""Lengths of the steps of a number in the unit cube, each up and down, times 0.5 to 1.5."""


def one_change_away(space: Space, config: Config, rng: Generator) -> list[Config]:
    """The configs with another value of one active parameter, in random order.

    After a change of a structural value, parameters that still exist keep their values and new ones
    are drawn.
    """
    subspace = space.subspace_of(config)
    values = values_of(subspace, config)
    found: list[Config] = []
    for coordinate in subspace.coordinates:
        key = coordinate.name, coordinate.index
        for value in other_values(coordinate.parameter, values[key], rng):
            if coordinate.is_fixed:
                found.append(complete(space, values | {key: value}, rng))
            else:
                found.append(_with_value(config, coordinate, value))
    return [found[int(at)] for at in rng.permutation(len(found))]


def other_values(parameter: Parameter, value: Value, rng: Generator) -> list[Value]:
    """Values to change one into.

    All others of a choice or of a few levels. Of a float, or an integer of many levels: random
    steps of several lengths, and for the integer also the next levels.
    """
    if not parameter.is_smooth:
        here = parameter.level_of(value)
        return [parameter.value_at(at) for at in range(parameter.n_levels) if at != here]
    steps = np.outer((-1.0, 1.0), STEPS) * rng.uniform(0.5, 1.5, (2, len(STEPS)))
    moved = [parameter.from_unit(unit) for unit in parameter.to_unit(value) + steps.ravel()]
    if not parameter.is_continuous:
        here = parameter.level_of(value)
        next_levels = (at for at in (here - 1, here + 1) if 0 <= at < parameter.n_levels)
        moved += [parameter.value_at(at) for at in next_levels]
    return list(dict.fromkeys(one for one in moved if one != value))


def _with_value(config: Config, coordinate: Coordinate, value: Value) -> Config:
    """A copy of the config with another value of a parameter without children."""
    changed = dict(config)
    if not coordinate.index:
        changed[coordinate.name] = value
    else:
        changed[coordinate.name] = list(config[coordinate.name])
        changed[coordinate.name][coordinate.index - 1] = value
    return changed
