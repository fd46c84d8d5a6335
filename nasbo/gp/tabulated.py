"""Numbers known of configs before their training, for rows of the unit cube, with a cache."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nasbo.features import Features
from nasbo.space import Subspace

Array = NDArray[np.float64]

N_PROBES = 8
"""Rows on which each float is changed to see whether any number depends on it."""
MAX_CACHED = 200_000


class Tabulated(ABC):
    """Columns made of numbers of configs.

    Numbers are worked out once for configs that differ only in floats and long ranges on which no
    number depends, as far as changing them on some random rows shows.

    Args:
        features: the numbers.
        names: those that the columns are made of.
    """

    def __init__(self, features: Features, names: Sequence[str]) -> None:
        self._features, self.names = features, tuple(names)
        self._keys: dict[int, NDArray[np.intp]] = {}
        self._known: dict[tuple[int, bytes], Array] = {}

    @abstractmethod
    def __len__(self) -> int:
        """Number of columns."""

    @abstractmethod
    def columns_of(self, table: Array) -> Array:
        """Columns, shape (n, n_columns), of numbers, shape (n, n_names)."""

    def columns(self, subspace: Subspace, x: Array) -> Array:
        """The columns of rows, shape (n, n_columns), for ``x`` of shape (n, n_free)."""
        if len(self._known) > MAX_CACHED:
            self._known.clear()
        key = self._key_columns(subspace)
        codes = [(subspace.index, row.tobytes()) for row in x[:, key]]
        new = {code: at for at, code in enumerate(codes) if code not in self._known}
        if new:
            numbers = self._worked_out(subspace, x[list(new.values())])
            self._known.update(zip(new, numbers, strict=True))
        return np.array([self._known[code] for code in codes]).reshape(len(x), len(self))

    def _worked_out(self, subspace: Subspace, x: Array) -> Array:
        """The columns of rows without the cache."""
        features = self._features
        found = None if features.tabulate is None else features.tabulate(subspace.table(x))
        if found is not None and found.keys() >= set(self.names):
            table = np.stack([np.broadcast_to(found[name], len(x)) for name in self.names], axis=1)
        else:
            described = [features(subspace.decode(row)) for row in x]
            table = np.array([[one[name] for name in self.names] for one in described])
        return self.columns_of(table)

    def _key_columns(self, subspace: Subspace) -> NDArray[np.intp]:
        """The columns of rows on which numbers depend; all that are not smooth are taken to."""
        if subspace.index not in self._keys:
            rng = np.random.default_rng(subspace.index)
            rows = subspace.sample(N_PROBES, rng)
            before = self._worked_out(subspace, rows)
            matters = np.ones(subspace.n_free, dtype=bool)
            for column in subspace.smooth:
                changed = rows.copy()
                changed[:, column] = 1.0 - rows[:, column]
                after = self._worked_out(subspace, subspace.snap(changed))
                matters[column] = not np.array_equal(before, after)
            self._keys[subspace.index] = np.flatnonzero(matters)
        return self._keys[subspace.index]
