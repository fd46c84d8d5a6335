"""Typical values of parameters among known configs, and configs with one value changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nasbo.history import Trial, View
from nasbo.space import Config, Coordinate, Parameter, Value

Place = tuple[str, int]
"""Name and index of a coordinate, which different branches may share."""


@dataclass(frozen=True)
class Seen:
    """What known configs have at each place: the parameter that stands there, and its value."""

    history: View
    values: Mapping[Place, Sequence[tuple[Parameter, Value]]]

    @staticmethod
    def of_trials(history: View, trials: Sequence[Trial]) -> Seen:
        found: dict[Place, list[tuple[Parameter, Value]]] = {}
        for trial in trials:
            for one in history.subspace(trial).coordinates:
                known = one.parameter, one.value_in(trial.config)
                found.setdefault((one.name, one.index), []).append(known)
        return Seen(history, found)

    def typical(self, coordinate: Coordinate) -> Value:
        """The most frequent choice, or the (lower) median of a number."""
        return self._typical(coordinate.parameter, (coordinate.name, coordinate.index))

    def changed(self, trial: Trial, target: Coordinate, value: Value) -> Config:
        """A trial's config with another value of one of its coordinates.

        Where that one is structural, what exists under both values keeps its value, and what comes
        into being has its typical one.
        """
        own = {(one.name, one.index): one for one in self.history.subspace(trial).coordinates}

        def decide(parameter: Parameter, key: tuple[str, int]) -> Value:
            place = parameter.name, key[1]
            if place == (target.name, target.index):
                return value
            if place in own and own[place].parameter == parameter:
                return own[place].value_in(trial.config)
            return self._typical(parameter, place)

        return self.history.space.build_config(decide)

    def _typical(self, parameter: Parameter, place: Place) -> Value:
        """The middle of a range that nobody has seen.

        Parameters of one name in different branches can have different ranges: those do not count.
        """
        values = [value for known, value in self.values.get(place, ()) if known == parameter]
        if not values:
            return parameter.from_unit(0.5)
        if parameter.is_ordered:
            return sorted(values, key=parameter.to_unit)[(len(values) - 1) // 2]
        ((level, _),) = Counter(map(parameter.level_of, values)).most_common(1)
        return parameter.value_at(level)
