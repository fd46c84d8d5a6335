"""Untried configs of methods that are asked for one config after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from numpy.random import Generator

from nasbo.methods.base import Suggestion, Task
from nasbo.methods.exclusion import Excluded
from nasbo.space import Config, Space
from nasbo.space.neighbours import complete, values_of

TRIES = 20
"""So often a method is asked for each config that is wanted."""
N_RECOMBINED = 400
MAX_REDRAWN = 0.6
"""The last ones have this share of their values drawn anew, the first ones none."""


def ask_untried(space: Space, task: Task, ask: Callable[[], Config]) -> list[Suggestion]:
    """The untried ones of what a method asks for, and then of its values put together anew.

    Args:
        space: of the configs.
        task: what is wanted and what is taken.
        ask: the method's next config; it may repeat itself.
    """
    taken = task.taken.copy()
    chosen: list[Suggestion] = []
    rejected: list[Config] = []
    for _ in range(TRIES * task.n):
        if len(chosen) == task.n:
            break
        config = ask()
        if config in taken:
            rejected.append(config)
            continue
        taken.add(config)
        chosen.append(Suggestion(config))
    return chosen + recombined(space, rejected, taken, task.n - len(chosen), task.rng)


def recombined(
    space: Space, rejected: Sequence[Config], taken: Excluded, n: int, rng: Generator
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
        if config not in taken:
            taken.add(config)
            chosen.append(Suggestion(config, info={"redrawn": round(rate, 3)}))
    return chosen
