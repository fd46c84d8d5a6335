"""What a benchmark problem is: a `Space` and a function from a `Config` to a value to minimise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nasbo.errors import NasboError
from nasbo.space import Space

Config = dict[str, Any]


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
    """

    name: str
    space: Space
    evaluate: Callable[[Config, np.random.Generator], float]
    truth: Callable[[Config], float] | None = None
    optimum: float | None = None
    version: int = 1
    is_returned: bool = False
    is_truth_costly: bool = False

    def __post_init__(self) -> None:
        if self.truth is None and (self.is_returned or self.is_truth_costly):
            raise NasboError(f"{self.name}: truth must be given where returned configs are scored")

    def score(self, config: Config, value: float) -> float:
        """The value by which a config counts that was measured as `value`."""
        return value if self.truth is None else self.truth(config)
