"""Studies of Optuna as histories: their trials as events of a search."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nasbo.history import Ending, Source
from nasbo.history import events as ev
from nasbo.interchange.define_by_run import SeenSpace
from nasbo.methods.base import DESIGN_PER_SUBSPACE
from nasbo.space import Config

SOURCE = "nasbo:source"
"""System attribute of a trial that says where its config came from: probes are counted."""


def events_of(
    trials: Sequence[Any], seen: SeenSpace, proposed: Mapping[int, Mapping[str, Any]]
) -> list[ev.Event]:
    """The trials of a study that a space can hold, as a search would have noted them.

    A finished trial has its value. A pruned one was stopped with its last value, a failed one
    crashed: methods treat them as those of a sweep. One that runs is pending.

    Args:
        trials: in the order of their numbers.
        seen: the space.
        proposed: parameters of running trials that may not have suggested all of them yet, by
            trial number.
    """
    found: list[ev.Event] = []
    counts: Counter[int] = Counter()
    known = ((trial, _config(trial, seen, proposed)) for trial in trials)
    usable = [(trial, config) for trial, config in known if config is not None]
    for number, (trial, config) in enumerate(usable):
        subspace = seen.space.subspace_of(config).index
        source: Source = "design" if counts[subspace] < DESIGN_PER_SUBSPACE else "model"
        if trial.system_attrs.get(SOURCE) == "probe":
            source = "probe"
        counts[subspace] += 1
        found += [
            ev.RoundOpened(round=number, size=1),
            ev.Suggested(
                trial=number, round=number, source=source, subspace=subspace, config=config
            ),
            ev.Started(run=number),
            *_ending(number, trial),
        ]
    return found


def _config(
    trial: Any, seen: SeenSpace, proposed: Mapping[int, Mapping[str, Any]]
) -> Config | None:
    if trial.state.is_finished():
        return seen.config_of(trial.params)
    instead = proposed.get(trial.number, {})
    return seen.config_of(trial.params, instead) if trial.params or instead else None


def _ending(number: int, trial: Any) -> Iterator[ev.Event]:
    state = trial.state.name
    if state == "COMPLETE":
        is_finite = math.isfinite(trial.value)
        ending = Ending.FINISHED if is_finite else Ending.DIVERGED
        yield ev.Ended(run=number, ending=ending, value=trial.value if is_finite else None)
    elif state == "PRUNED":
        step, value = trial.last_step, None
        if step is not None and math.isfinite(trial.intermediate_values[step]):
            value = trial.intermediate_values[step]
        yield ev.Ended(run=number, ending=Ending.STOPPED, value=value, step=step or 0)
    elif state == "FAIL":
        yield ev.Ended(run=number, ending=Ending.CRASHED)
