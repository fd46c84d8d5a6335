"""Pool of configs of choices, in which the nearest config has the fewest changed choices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nasbo.bench.problem import Config
from nasbo.errors import NasboError
from nasbo.history import config_key
from nasbo.space import Space


@dataclass(frozen=True)
class ChoicePool:
    """Finite set of configs of a flat space without floats.

    Attributes:
        space: all of its parameters are always active.
        read: returns the configs, in the space's own form; called when they are first needed.
    """

    space: Space
    read: Callable[[], Sequence[Config]]

    def row(self, config: Config) -> int:
        """The row of a config; raises ``NasboError`` if it is not in the pool."""
        found = self._rows.get(config_key(config))
        if found is None:
            raise NasboError(f"only configs of the pool have values, got {config}")
        return found

    def snap(self, config: Config, used: Collection[str]) -> Config | None:
        """The unused config with the fewest changed choices; ``None`` if all are used.

        Of several, it is the one whose ordered choices have moved by the fewest levels, and then
        the first of the pool.
        """
        gaps = np.abs(self._levels - self._levels_of(config))
        moved = (gaps * self._is_ordered).sum(1)
        for row in np.lexsort((moved, (gaps > 0).sum(1))):
            if self._keys[row] not in used:
                return dict(self.read()[row])
        return None

    def _levels_of(self, config: Config) -> NDArray[np.int64]:
        levels = [p.level_of(config[p.name]) for p in self.space.parameters]
        return np.array(levels, dtype=np.int64)

    @cached_property
    def _is_ordered(self) -> NDArray[np.bool_]:
        return np.array([p.is_ordered for p in self.space.parameters])

    @cached_property
    def _levels(self) -> NDArray[np.int64]:
        """Levels of all configs, shape (n, n_parameters)."""
        return np.array([self._levels_of(config) for config in self.read()])

    @cached_property
    def _keys(self) -> list[str]:
        return [config_key(config) for config in self.read()]

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {key: row for row, key in enumerate(self._keys)}
