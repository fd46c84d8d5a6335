"""Configs that may not be suggested come in; one that may, made of their values, goes out."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.random import Generator

from nasbo.acquisition.neighbours import complete, values_of
from nasbo.history import config_key
from nasbo.methods.base import Suggestion
from nasbo.space import Config, Space

N_RECOMBINED = 400
MAX_REDRAWN = 0.6
"""The last ones have this share of their values drawn anew, the first ones none."""


def recombined(
    space: Space, rejected: Sequence[Config], taken: set[str], n: int, rng: Generator
) -> list[Suggestion]:
    """At most ``n`` untried configs of the rejected ones' values, or as few drawn anew as it takes.

    For methods that draw one config after the other and meet only those that are known or outside
    the limits. The method has not rated them as a whole: their info has the share of values that
    were to be drawn anew, as ``redrawn``, by which they can be told from its own.

    Args:
        space: of the configs.
        rejected: what the method asked for.
        taken: keys of the configs that are not wanted; those that come back are added.
        n: how many are wanted.
        rng: random numbers.
    """
    chosen: list[Suggestion] = []
    known = [values_of(space.subspace_of(config), config) for config in rejected]
    keys = dict.fromkeys(key for values in known for key in values)
    seen = {key: [values[key] for values in known if key in values] for key in keys}
    for attempt in range(N_RECOMBINED * n if known else 0):
        if len(chosen) == n:
            break
        rate = MAX_REDRAWN * attempt / (N_RECOMBINED * n)
        kept = {key: values for key, values in seen.items() if rng.random() >= rate}
        wanted = {key: values[int(rng.integers(len(values)))] for key, values in kept.items()}
        config = complete(space, wanted, rng)
        if config_key(config) not in taken:
            taken.add(config_key(config))
            chosen.append(Suggestion(config, info={"redrawn": round(rate, 3)}))
    return chosen
