"""A space and wanted values come in; a whole config that keeps as many of them as can be goes out.

That is how a config moves to another subspace: one structural value changes, and what exists only
under the new value is drawn at random.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from numpy.random import Generator

from nasbo.errors import ConfigError
from nasbo.space import Config, Parameter, Space, Subspace, Value
from nasbo.surrogates.vertices import Key, walk

Values = dict[tuple[str, int], Value]


def complete(space: Space, wanted: Mapping[tuple[str, int], Value], rng: Generator) -> Config:
    """A config with the wanted values, by (name, place in the list), where they can be had.

    ``None`` is a value like any other; parameters that are not mentioned are drawn.
    """

    def decide(parameter: Parameter, key: Key) -> Value:
        name = parameter.name, key[1]
        if name in wanted:
            try:
                return parameter.canonical(wanted[name])
            except ConfigError:  # it belongs to a parameter of that name in another branch
                return parameter.sample(rng)
        return parameter.sample(rng)

    return walk(space, decide)


def values_of(subspace: Subspace, config: Config) -> Values:
    """All values of a config by (name, place in the list)."""
    values: Values = {}
    for slot in subspace.slots:
        entry = config[slot.name]
        values[slot.name, slot.index] = entry[slot.index - 1] if slot.index else entry
    return values


def structural_neighbours(
    space: Space, subspace: Subspace, config: Config, rng: Generator
) -> Iterator[Config]:
    """The config with one structural value changed to each of its other values."""
    values = values_of(subspace, config)
    for slot in subspace.slots:
        if not slot.is_fixed:
            continue
        here = slot.parameter.level_of(slot.value)
        for level in range(slot.parameter.n_levels):
            if level != here:
                changed = {(slot.name, slot.index): slot.parameter.value_at(level)}
                yield complete(space, values | changed, rng)
