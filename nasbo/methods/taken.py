"""Configs that are not wanted: known ones, and all those outside the limits of the search."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from nasbo.limits import MAX_DRAWS
from nasbo.space import Config

MAX_DRAWS_IN_SUBSPACE = 2_000
"""The same for the design's configs of one subspace: its places then go to other subspaces."""


class Taken(set[str]):
    """Keys of configs (``config_key``) that a method must not suggest.

    This is the one seam through which limits reach all methods: a config outside the limits counts
    as taken. Whoever needs a set of one's own makes it by ``copy``.

    Args:
        keys: of the configs that were suggested or observed.
        allows: whether a config is inside the limits; ``None`` where there are none.
    """

    def __init__(
        self, keys: Iterable[str] = (), allows: Callable[[Config], bool] | None = None
    ) -> None:
        super().__init__(keys)
        self.allows = allows
        self._verdicts: dict[str, bool] = {}

    def __contains__(self, key: object) -> bool:
        if super().__contains__(key):
            return True
        return self.allows is not None and not self._is_allowed(str(key))

    def copy(self) -> Taken:
        """The same, to add to."""
        other = Taken(self, self.allows)
        other._verdicts = self._verdicts
        return other

    def _is_allowed(self, key: str) -> bool:
        if key not in self._verdicts:
            assert self.allows is not None
            self._verdicts[key] = self.allows(json.loads(key))
        return self._verdicts[key]


def limits_of(taken: set[str]) -> Callable[[Config], bool] | None:
    """Whether a config is inside the limits, as a set of taken configs has it; ``None`` for all."""
    return taken.allows if isinstance(taken, Taken) else None


def n_draws(taken: set[str], usual: int, is_everywhere: bool = False) -> int:
    """How many configs to draw before it is said that there are no others.

    Args:
        taken: configs that are not wanted.
        usual: so many where there are no limits.
        is_everywhere: whether they are drawn from the whole space, or from one subspace.
    """
    if limits_of(taken) is None:
        return usual
    return MAX_DRAWS if is_everywhere else MAX_DRAWS_IN_SUBSPACE
