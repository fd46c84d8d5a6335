"""What a benchmark problem is: a `Space` and a function from a `Config` to a value to minimise."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nasbo.errors import NasboError
from nasbo.features import Features
from nasbo.space import Space

Config = dict[str, Any]
Snap = Callable[[Config, Collection[str]], Config | None]


@dataclass(frozen=True)
class Curve:
    """Values of a training on its way: a problem that can be trained in part.

    Attributes:
        at: The (perhaps noisy) value of a config after so many steps, 1 to `n_steps`; noise comes
            from the generator.
        n_steps: Of a full training.
        finals: True values of random configs at the end, or of all configs of a pool. Their least
            value and their median make regrets comparable.
        n_untrained: Steps at the beginning whose values were measured before any training.
    """

    at: Callable[[Config, int, np.random.Generator], float]
    n_steps: int
    finals: Callable[[], Sequence[float]]
    n_untrained: int = 0


@dataclass(frozen=True)
class Problem:
    """One objective over one space, minimised.

    Attributes:
        space: The only definition of the search space; peers get it through adapters.
        evaluate: The (perhaps noisy) value that a method is told; noise comes from the generator.
        truth: The value without noise, by which methods are scored; None if `evaluate` has none.
        optimum: The least true value, if it is known: regret is then measured from it.
        version: Raised when the values change, so that cached results are not mixed with new ones.
        is_returned: Whether a method is scored by the truth of the config that it returns, and not
            by the least truth of those that it tried, which nobody would know of.
        is_truth_costly: Whether the truth costs so much that only configs get it that are returned
            or were measured best.
        truth_after: Where even that is too much: after how many trials beyond the design the
            returned config gets its truth. It also does before the first one; a curve keeps the
            last known value in between. Empty for all.
        curve: Values on the way; None where configs are evaluated as a whole. `evaluate` is then
            its value at the end.
        features: What is known of a config beforehand; methods with the rule `+features`
            are told.
        snap: Where only the configs of a pool have values: from a proposal and the keys
            (`config_key`) of used configs to the nearest unused config of the pool, or None when
            all are used. The search reports that config.
    """

    name: str
    space: Space
    evaluate: Callable[[Config, np.random.Generator], float]
    truth: Callable[[Config], float] | None = None
    optimum: float | None = None
    version: int = 1
    is_returned: bool = False
    is_truth_costly: bool = False
    truth_after: tuple[int, ...] = ()
    curve: Curve | None = None
    snap: Snap | None = None
    features: Features | None = None

    def __post_init__(self) -> None:
        if self.truth is None and (self.is_returned or self.is_truth_costly):
            raise NasboError(f"{self.name}: truth must be given where returned configs are scored")

    def score(self, config: Config, value: float) -> float:
        """The value by which a config counts that was measured as `value`."""
        return value if self.truth is None else self.truth(config)

    def true_value(self, config: Config) -> float:
        """The value without noise of a config; what has no truth apart has no noise."""
        return self.truth(config) if self.truth else self.evaluate(config, np.random.default_rng(0))
