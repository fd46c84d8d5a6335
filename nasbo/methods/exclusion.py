"""Configs that a method must not suggest: known ones, and those outside the limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nasbo.history import config_key
from nasbo.limits import MAX_DRAWS
from nasbo.space import Config

MAX_DRAWS_IN_SUBSPACE = 2_000
"""Rejection-sampling budget for the design's configs of one subspace; beyond it the subspace
counts as outside the limits."""


class Excluded:
    """Configs that must not be suggested: ``config in excluded``.

    Args:
        keys: of configs that were suggested or observed (``config_key``).
        allows: whether a config is inside the limits; ``None`` where there are none.
    """

    def __init__(
        self, keys: Iterable[str] = (), allows: Callable[[Config], bool] | None = None
    ) -> None:
        self._keys = set(keys)
        self.allows = allows
        self._verdicts: dict[str, bool] = {}

    def __contains__(self, config: Config) -> bool:
        key = config_key(config)
        if key in self._keys:
            return True
        if self.allows is None:
            return False
        if key not in self._verdicts:
            self._verdicts[key] = self.allows(config)
        return not self._verdicts[key]

    def add(self, *configs: Config) -> None:
        """Exclude more configs."""
        self._keys.update(map(config_key, configs))

    def copy(self) -> Excluded:
        """An independent object with the same content."""
        other = Excluded(self._keys, self.allows)
        other._verdicts = self._verdicts
        return other

    def with_limits(self, allows: Callable[[Config], bool] | None) -> Excluded:
        """The same known configs with other limits."""
        return Excluded(self._keys, allows)

    def n_draws(self, usual: int, is_everywhere: bool = False) -> int:
        """Number of draws after which no other config is expected.

        Args:
            usual: the number without limits.
            is_everywhere: whether the draws are from the whole space or from one subspace.
        """
        if self.allows is None:
            return usual
        return MAX_DRAWS if is_everywhere else MAX_DRAWS_IN_SUBSPACE
