"""Untried configs from methods that suggest one config at a time and may repeat themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from numpy.random import Generator

from nasbo.methods.base import Suggestion, Task
from nasbo.methods.exclusion import Excluded
from nasbo.space import Config, Space
from nasbo.space.neighbours import complete, values_of

TRIES = 20
"""How often a method is asked for each wanted config."""
N_RECOMBINED = 400
MAX_REDRAWN = 0.6
"""Share of values that are drawn anew in the last attempts; it rises linearly from 0."""


def ask_untried(space: Space, task: Task, ask: Callable[[], Config]) -> list[Suggestion]:
    """Untried configs that a method suggests, then recombinations of the values that it suggested.

    Args:
        space: of the configs.
        task: number of wanted configs, and the excluded ones.
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
    """At most ``n`` untried configs that recombine the values of rejected ones.

    For methods that suggest one config at a time and find only known configs or configs
    outside the limits. A rising share of the values is drawn anew, so that as few as possible
    are. The method has not rated these configs: their info has that share as ``redrawn``,
    which tells them from its own.

    Args:
        space: of the configs.
        rejected: configs that the method suggested.
        taken: excluded configs; the returned ones are added.
        n: number of wanted configs.
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
