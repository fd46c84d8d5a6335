"""Numbers known of a config before its training, such as its parameters, as columns of a kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nasbo.features import Features
from nasbo.space import Space, Subspace

Array = NDArray[np.float64]

N_DRAWN = 256
"""Random configs that the scale of a number comes from."""
DECADE = 10.0
"""Positive numbers that differ by more than this factor are taken as their logarithms."""
EDGES = (0.05, 0.95)
"""These quantiles of random configs are at -0.5 and 0.5."""
N_PROBES = 8
"""Rows on which each float is changed to see whether any number depends on it."""
MAX_CACHED = 200_000


class FreeFeatures:
    """Scaled numbers of configs; those that are the same for all random configs are left out.

    Numbers are worked out once for configs that differ only in floats and long ranges on which no
    number depends, as far as changing them on some random rows shows.

    Args:
        space: of the configs.
        features: their numbers.

    Attributes:
        names: of the columns.
    """

    def __init__(self, space: Space, features: Features) -> None:
        self._features = features
        rng = np.random.default_rng(0)
        wanted = features.names_in(space)
        drawn = [features(space.sample(rng)) for _ in range(N_DRAWN)]
        table = np.array([[one[name] for name in wanted] for one in drawn])
        self._is_log = (table > 0).all(0) & (table.max(0) > DECADE * table.min(0))
        low, high = np.quantile(self._straight(table), EDGES, axis=0)
        varies = high > low
        self.names = tuple(name for name, is_kept in zip(wanted, varies, strict=True) if is_kept)
        self._is_log, self._low = self._is_log[varies], low[varies]
        self._reach = (high - low)[varies]
        self._keys: dict[int, NDArray[np.intp]] = {}
        self._known: dict[tuple[int, bytes], Array] = {}

    def __len__(self) -> int:
        return len(self.names)

    def columns(self, subspace: Subspace, x: Array) -> Array:
        """The scaled numbers of rows, shape (n, n_names), for ``x`` of shape (n, n_free)."""
        if len(self._known) > MAX_CACHED:
            self._known.clear()
        key = self._key_columns(subspace)
        codes = [(subspace.index, row.tobytes()) for row in x[:, key]]
        new = {code: at for at, code in enumerate(codes) if code not in self._known}
        if new:
            numbers = self._numbers(subspace, x[list(new.values())])
            self._known.update(zip(new, numbers, strict=True))
        return np.array([self._known[code] for code in codes]).reshape(len(x), len(self.names))

    def _numbers(self, subspace: Subspace, x: Array) -> Array:
        """The scaled numbers of rows, worked out."""
        features = self._features
        found = None if features.tabulate is None else features.tabulate(subspace.table(x))
        if found is not None and found.keys() >= set(self.names):
            table = np.stack([np.broadcast_to(found[name], len(x)) for name in self.names], axis=1)
        else:
            described = [features(subspace.decode(row)) for row in x]
            table = np.array([[one[name] for name in self.names] for one in described])
        scaled: Array = (self._straight(table) - self._low) / self._reach - 0.5
        return scaled

    def _straight(self, table: Array) -> Array:
        """Numbers that span decades as logarithms."""
        return np.where(self._is_log, np.log(np.where(self._is_log, table, 1.0)), table)

    def _key_columns(self, subspace: Subspace) -> NDArray[np.intp]:
        """The columns of rows on which numbers depend; all that are not smooth are taken to."""
        if subspace.index not in self._keys:
            rng = np.random.default_rng(subspace.index)
            rows = subspace.sample(N_PROBES, rng)
            before = self._numbers(subspace, rows)
            matters = np.ones(subspace.n_free, dtype=bool)
            for column in subspace.smooth:
                changed = rows.copy()
                changed[:, column] = 1.0 - rows[:, column]
                after = self._numbers(subspace, subspace.snap(changed))
                matters[column] = not np.array_equal(before, after)
            self._keys[subspace.index] = np.flatnonzero(matters)
        return self._keys[subspace.index]
