"""Benchmark problem: a `Space` and a function from a `Config` to a value to minimise."""

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
    """Learning curve of a problem whose trials can be trained in part.

    Attributes:
        at: The (perhaps noisy) value of a config after a number of steps, 1 to `n_steps`; noise is
            drawn from the generator.
        n_steps: Number of steps of a full training.
        finals: True final values of random configs, or of all configs of a pool. Regrets are scaled
            by their minimum and median.
        n_untrained: Number of leading steps whose values were measured before any training.
    """

    at: Callable[[Config, int, np.random.Generator], float]
    n_steps: int
    finals: Callable[[], Sequence[float]]
    n_untrained: int = 0


@dataclass(frozen=True)
class TrueFront:
    """Two or three objectives of a problem, and how fronts are scored.

    Attributes:
        objectives: Texts for ``nasbo.Search``; the first is what `evaluate` returns, the others are
            among the problem's `features`.
        share: Share of the true hypervolume that some configs reach by their true values.
    """

    objectives: tuple[str, ...]
    share: Callable[[Sequence[Config]], float]


@dataclass(frozen=True)
class Problem:
    """One objective over one space, to be minimised.

    Attributes:
        space: The only definition of the search space; peers get it through adapters.
        evaluate: The (perhaps noisy) value that a method is told; noise is drawn from the
            generator.
        truth: The noise-free value, by which methods are scored; None if `evaluate` has no noise.
        optimum: The least true value, if known: regret is then measured from it.
        version: Raised when the values change, so that cached results do not mix with new ones.
        is_returned: Whether a method is scored by the truth of the config that it returns, and not
            by the least truth among those that it tried, which a user would not know.
        is_truth_costly: Whether the truth is so costly that it is evaluated only for configs that
            are returned or were measured best.
        truth_after: If that is still too costly: the numbers of trials after the design at which
            the truth of the returned config is evaluated, in addition to 0. In between, a curve
            keeps the last known value. Empty means all.
        curve: Values during training; None if configs are only evaluated as a whole. `evaluate` is
            its final value.
        features: Numbers of a config that are known before its evaluation, for methods with the
            rule `+features`.
        snap: For a pool: maps a proposed config and the keys (`config_key`) of used configs to the
            nearest unused config of the pool, or None if all are used. The search reports that
            config.
        front: Further objectives. Then the score after a trial is 1 - the share of the true
            hypervolume that all trials so far have.
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
    front: TrueFront | None = None

    def __post_init__(self) -> None:
        if self.truth is None and (self.is_returned or self.is_truth_costly):
            raise NasboError(f"{self.name}: truth must be given where returned configs are scored")

    def score(self, config: Config, value: float) -> float:
        """The value by which a config is scored that was measured as `value`."""
        return value if self.truth is None else self.truth(config)

    def true_value(self, config: Config) -> float:
        """The noise-free value of a config; without `truth` the problem has no noise."""
        return self.truth(config) if self.truth else self.evaluate(config, np.random.default_rng(0))
