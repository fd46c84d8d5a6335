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


class Replay:
    """The trials of a study that a space can hold, as a search would have noted them.

    A finished trial has its value. A pruned one was stopped with its last value, a failed one
    crashed: methods treat them as those of a sweep. One that runs is pending.
    """

    def __init__(self, seen: SeenSpace) -> None:
        self.seen = seen
        self._finished: dict[int, tuple[Config, int] | None] = {}

    def events(
        self, trials: Sequence[Any], proposed: Mapping[int, Mapping[str, Any]]
    ) -> list[ev.Event]:
        """The events of trials.

        Args:
            trials: of one study, in the order of their numbers.
            proposed: parameters of running trials that may not have suggested all of them yet, by
                trial number.
        """
        found: list[ev.Event] = []
        counts: Counter[int] = Counter()
        known = ((trial, self._placed(trial, proposed)) for trial in trials)
        usable = [(trial, placed) for trial, placed in known if placed is not None]
        for number, (trial, (config, subspace)) in enumerate(usable):
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

    def _placed(
        self, trial: Any, proposed: Mapping[int, Mapping[str, Any]]
    ) -> tuple[Config, int] | None:
        """The config of a trial and its subspace; ``None`` where it has none yet, or no more."""
        if trial.state.is_finished():
            if trial.number not in self._finished:
                self._finished[trial.number] = self._place(self.seen.config_of(trial.params))
            return self._finished[trial.number]
        instead = proposed.get(trial.number, {})
        if not trial.params and not instead:
            return None
        return self._place(self.seen.config_of(trial.params, instead))

    def _place(self, config: Config | None) -> tuple[Config, int] | None:
        return None if config is None else (config, self.seen.space.subspace_of(config).index)


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
