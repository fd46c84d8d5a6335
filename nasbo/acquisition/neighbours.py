"""A space and wanted values come in; a whole config that keeps as many of them as can be goes out.

That is how a config moves to another subspace: one structural value changes, and what exists only
under the new value is drawn at random.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from numpy.random import Generator

from nasbo.errors import ConfigError
from nasbo.space import Config, Parameter, Space, Subspace, Value

Wanted = Mapping[tuple[str, int], Value]


def complete(space: Space, wanted: Wanted, rng: Generator) -> Config:
    """A config with the wanted values, by (name, place in the list), and random others."""
    config: Config = {}
    _fill(space.parameters, wanted, rng, config, 0)
    return config


def values_of(subspace: Subspace, config: Config) -> dict[tuple[str, int], Value]:
    """All values of a config by (name, place in the list)."""
    values: dict[tuple[str, int], Value] = {}
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


def _fill(
    group: Sequence[Parameter], wanted: Wanted, rng: Generator, config: Config, at: int
) -> None:
    for parameter in group:
        key = (parameter.name, at)
        is_known = key in wanted and _is_inside(parameter, wanted[key])
        value = wanted[key] if is_known else parameter.sample(rng)
        if at:
            config[parameter.name][at - 1] = value
        else:
            config[parameter.name] = value
        _fill(parameter.branch(value), wanted, rng, config, at)
        if parameter.repeated:
            _fill_lists(parameter, int(value), wanted, rng, config)  # type: ignore[arg-type]


def _fill_lists(
    parameter: Parameter, times: int, wanted: Wanted, rng: Generator, config: Config
) -> None:
    for name in _names(parameter.repeated):
        config[name] = [None] * times
    for at in range(1, times + 1):
        _fill(parameter.repeated, wanted, rng, config, at)


def _names(group: Sequence[Parameter]) -> Iterator[str]:
    for parameter in group:
        yield parameter.name
        for branch in parameter.branches:
            yield from _names(branch.parameters)


def _is_inside(parameter: Parameter, value: Value) -> bool:
    """Whether a value of a parameter of the same name elsewhere can be taken over."""
    try:
        parameter.canonical(value)
    except ConfigError:
        return False
    return True
