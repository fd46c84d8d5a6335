"""Numbers known of a config before its training, such as its parameters, as columns of a kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nasbo.features import Features
from nasbo.gp.tabulated import Tabulated
from nasbo.space import Space

Array = NDArray[np.float64]

N_DRAWN = 256
"""Random configs that the scale of a number comes from."""
DECADE = 10.0
"""Positive numbers that differ by more than this factor are taken as their logarithms."""
EDGES = (0.05, 0.95)
"""These quantiles of random configs are at -0.5 and 0.5."""


class FreeFeatures(Tabulated):
    """Scaled numbers of configs; those that are the same for all random configs are left out.

    Args:
        space: of the configs.
        features: their numbers.

    Attributes:
        names: of the columns.
    """

    def __init__(self, space: Space, features: Features) -> None:
        rng = np.random.default_rng(0)
        wanted = features.names_in(space)
        drawn = [features(space.sample(rng)) for _ in range(N_DRAWN)]
        table = np.array([[one[name] for name in wanted] for one in drawn])
        self._is_log = (table > 0).all(0) & (table.max(0) > DECADE * table.min(0))
        low, high = np.quantile(self._straight(table), EDGES, axis=0)
        varies = high > low
        names = tuple(name for name, is_kept in zip(wanted, varies, strict=True) if is_kept)
        super().__init__(features, names)
        self._is_log, self._low = self._is_log[varies], low[varies]
        self._reach = (high - low)[varies]

    def __len__(self) -> int:
        return len(self.names)

    def columns_of(self, table: Array) -> Array:
        """The scaled numbers."""
        scaled: Array = (self._straight(table) - self._low) / self._reach - 0.5
        return scaled

    def _straight(self, table: Array) -> Array:
        """Numbers that span decades as logarithms."""
        return np.where(self._is_log, np.log(np.where(self._is_log, table, 1.0)), table)
