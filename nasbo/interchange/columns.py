"""Parameters of a define-by-run study as columns of numbers, whatever their values are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nasbo.space import Parameter, Value
from nasbo.space.kinds import Choice, Integer, Real


@dataclass(frozen=True)
class Column:
    """A parameter of a study.

    Choices are searched by their positions, stepped ranges by the number of steps: Optuna's choices
    may be anything.

    Attributes:
        distribution: of Optuna.
        parameter: that stands for it in nasbo's space.
        step: between neighbouring values; 0 where values are as they are.
    """

    distribution: Any
    parameter: Parameter
    step: float = 0.0

    @staticmethod
    def of(name: str, distribution: Any) -> Column:
        """The column of a distribution, by the name that it has in nasbo's space."""
        if hasattr(distribution, "choices"):
            return Column(
                distribution, Choice(name, values=tuple(range(len(distribution.choices))))
            )
        low, high, step = distribution.low, distribution.high, distribution.step
        is_whole = isinstance(low, int)
        if step is None or distribution.log or (is_whole and step == 1):
            kind = Integer if is_whole else Real
            return Column(distribution, kind(name, low=low, high=high, log=distribution.log))
        n_steps = round((high - low) / step)
        return Column(distribution, Integer(name, low=0, high=n_steps), step)

    def inner(self, value: Any) -> Value:
        """A value of the study as nasbo's space has it; ``ConfigError`` if it is outside."""
        if hasattr(self.distribution, "choices"):
            return int(self.distribution.to_internal_repr(value))
        if self.step:
            value = round((value - self.distribution.low) / self.step)
        return self.parameter.canonical(value)

    def outer(self, value: Any) -> Any:
        """Inverse of ``inner``."""
        one = self.distribution
        if hasattr(one, "choices"):
            return one.choices[value]
        if self.step:
            return type(one.low)(min(one.low + value * self.step, one.high))
        return value

    def code(self, value: Any) -> float:
        """A value as conditions see it: its level, or itself."""
        known = self.inner(value)
        if self.parameter.is_continuous:
            return float(known)  # type: ignore[arg-type]
        return self.parameter.level_of(known)
