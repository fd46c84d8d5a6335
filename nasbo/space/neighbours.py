"""Configs close to others: values are kept where possible, and new ones are drawn at random.

So a config moves to another subspace: one structural value changes, and parameters that exist only
under the new value are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from numpy.random import Generator

from nasbo.errors import ConfigError
from nasbo.space.parameter import Config, Parameter, Value
from nasbo.space.subspace import Subspace
from nasbo.space.tree import Space
from nasbo.space.walk import Key

Values = dict[tuple[str, int], Value]
"""Values by name and list index (0 outside of lists)."""


def complete(space: Space, wanted: Mapping[tuple[str, int], Value], rng: Generator) -> Config:
    """A config with the wanted values where possible; the others are drawn.

    ``None`` is a value like any other.
    """

    def decide(parameter: Parameter, key: Key) -> Value:
        name = parameter.name, key[1]
        if name in wanted:
            with suppress(ConfigError):  # of a parameter with that name in another branch
                return parameter.canonical(wanted[name])
        return parameter.sample(rng)

    return space.build_config(decide)


def values_of(subspace: Subspace, config: Config) -> Values:
    """All values of a config."""
    return {(one.name, one.index): one.value_in(config) for one in subspace.coordinates}


def structural_neighbours(
    space: Space, subspace: Subspace, config: Config, rng: Generator
) -> Iterator[Config]:
    """The config with one structural value changed, to each of its other values in turn."""
    values = values_of(subspace, config)
    for coordinate in (one for one in subspace.coordinates if one.is_fixed):
        for value in map(coordinate.parameter.value_at, range(coordinate.parameter.n_levels)):
            if value != coordinate.value:
                yield complete(space, values | {(coordinate.name, coordinate.index): value}, rng)
