"""Trial of Optuna that records what is suggested to a function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from numpy.random import Generator

from nasbo.interchange.distributions import PURPOSE, hull, parameter_of
from nasbo.interchange.packages import need

RARE = 0.5
"""Share of draws that take the rarest value so far, so that each branch is seen soon."""
MAX_COUNTED = 64


class Record:
    """What trials so far have suggested.

    Attributes:
        distributions: by name, with the ends of all ranges seen.
        changing: names whose ranges were not always the same.
        configs: what each trial suggested, in its order.
    """

    def __init__(self, rng: Generator) -> None:
        self.rng = rng
        self.distributions: dict[str, Any] = {}
        self.changing: set[str] = set()
        self.configs: list[dict[str, Any]] = []
        self._counts: dict[str, Counter[int]] = {}

    def draw(self, name: str, distribution: Any) -> Any:
        """A value, uniform or the rarest one so far."""
        known = self.distributions.setdefault(name, distribution)
        if known != distribution:
            self.changing.add(name)
            self.distributions[name] = hull(known, distribution)
        parameter, _ = parameter_of(name, distribution)
        if not 0 < parameter.n_levels <= MAX_COUNTED:
            return parameter.sample(self.rng)
        counts = self._counts.setdefault(name, Counter())
        level = int(self.rng.integers(parameter.n_levels))
        if self.rng.random() < RARE:
            level = min(range(parameter.n_levels), key=lambda at: (counts[at], self.rng.random()))
        counts[level] += 1
        return parameter.value_at(level)


class RecordingTrial:
    """What an objective takes for a trial; it is told to stop at its first report."""

    def __init__(self, record: Record, number: int) -> None:
        self._record, self.number = record, number
        self._kinds = need("optuna.distributions", PURPOSE, "optuna")
        self.params: dict[str, Any] = {}
        self.distributions: dict[str, Any] = {}
        self.user_attrs: dict[str, Any] = {}
        self.system_attrs: dict[str, Any] = {}
        self.constraints: dict[str, float] = {}
        self.relative_params: dict[str, Any] = {}
        self.datetime_start = datetime.now()

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        kind = self._kinds.FloatDistribution
        return float(self._suggest(name, kind(low, high, log=log, step=step)))

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        kind = self._kinds.IntDistribution
        return int(self._suggest(name, kind(low, high, log=log, step=step)))

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        return self._suggest(name, self._kinds.CategoricalDistribution(choices))

    def suggest_uniform(self, name: str, low: float, high: float) -> float:
        return self.suggest_float(name, low, high)

    def suggest_loguniform(self, name: str, low: float, high: float) -> float:
        return self.suggest_float(name, low, high, log=True)

    def suggest_discrete_uniform(self, name: str, low: float, high: float, q: float) -> float:
        return self.suggest_float(name, low, high, step=q)

    def report(self, value: float, step: int) -> None:
        """Nothing: what is reported says nothing of the space."""

    def should_prune(self) -> bool:
        """Yes: a training has begun, and nothing more will be suggested."""
        return True

    def set_user_attr(self, key: str, value: Any) -> None:
        self.user_attrs[key] = value

    def set_system_attr(self, key: str, value: Any) -> None:
        self.system_attrs[key] = value

    def set_constraint(self, key: str, value: float) -> None:
        self.constraints[key] = value

    def _suggest(self, name: str, distribution: Any) -> Any:
        if name not in self.params:
            self.params[name] = self._record.draw(name, distribution)
            self.distributions[name] = distribution
        return self.params[name]
