"""Values of objectives that are known before a training, for rows of the unit cube."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from nasbo.features import Features
from nasbo.gp.tabulated import Tabulated
from nasbo.history.objectives import Objective, Objectives
from nasbo.space import Config, Space

Array = NDArray[np.float64]
logger = logging.getLogger(__name__)

N_DRAWN = 256
"""Random configs that show the usual range of an objective."""


class KnownValues(Tabulated):
    """Values of the known objectives, one column each, in their order.

    Args:
        features: numbers of configs.
        objectives: of the search; those that are not known are left out.
    """

    def __init__(self, features: Features, objectives: Objectives) -> None:
        self.objectives = tuple(one for one in objectives if one.is_known)
        names = dict.fromkeys(name for one in self.objectives for name in one.names)
        super().__init__(features, tuple(names))

    def __len__(self) -> int:
        return len(self.objectives)

    def columns_of(self, table: Array) -> Array:
        """The values, shape (n, n_known)."""
        return np.stack([self._column(one, table) for one in self.objectives], axis=1)

    def _column(self, objective: Objective, table: Array) -> Array:
        """The values of one objective, shape (n,)."""
        if objective.metric in self.names:
            column: Array = table[:, self.names.index(objective.metric)].astype(np.float64)
            return column
        rows = (dict(zip(self.names, map(float, row), strict=True)) for row in table)
        return np.array([objective.value_in(row) for row in rows], dtype=np.float64)

    def of_config(self, config: Config) -> Array:
        """The values of one config, shape (n_known,); nan where they cannot be had."""
        try:
            numbers = self._features(config)
        except Exception as error:  # a user's function may raise anything
            logger.debug("no numbers of %s: %s: %s", config, type(error).__name__, error)
            return np.full(len(self), np.nan)
        return np.array([one.value_in(numbers) for one in self.objectives], dtype=np.float64)

    def drawn(self, space: Space) -> Array:
        """The values of random configs, shape (n, n_known), always the same ones."""
        rng = np.random.default_rng(0)
        return np.array([self.of_config(space.sample(rng)) for _ in range(N_DRAWN)])
