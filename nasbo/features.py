"""Numbers of configs that are known before a training, for surrogates that can use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nasbo.errors import NasboError
from nasbo.limits import Describe, numbers_of
from nasbo.space import Config, Space

Tabulate = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""The numbers of many configs at once, by name, shape (n,): from the values by parameter, shape
(n,) or (n, length) for lists."""
MARKED = "features"
"""Under this name a summary lists those of its numbers that tell about results."""


@dataclass(frozen=True)
class Features:
    """Features of configs for a surrogate; picklable if its functions are.

    Attributes:
        describe: numbers by name of a config, the same names for all; non-numbers are dropped.
        names: which of them; ``None`` for those that the description marks, or else all.
        tabulate: the same for many configs at once, where that is quicker.
    """

    describe: Describe
    names: tuple[str, ...] | None = None
    tabulate: Tabulate | None = None

    def __call__(self, config: Config) -> Mapping[str, float]:
        return numbers_of(self.describe(config))

    def names_in(self, space: Space) -> tuple[str, ...]:
        """The names that are used.

        Raises:
            NasboError: a number that the description of a config does not have.
        """
        described = self.describe(space.default_config())
        known = numbers_of(described)
        wanted = self.names if self.names is not None else described.get(MARKED, tuple(known))
        if not wanted:
            raise NasboError("features must be numbers of the summary, which has none")
        if strangers := [name for name in wanted if name not in known]:
            raise NasboError(
                f"features must be numbers of the summary, one of {', '.join(known) or 'none'}; "
                f"got {strangers[0]!r}"
            )
        return tuple(wanted)


def as_features(
    features: Features | Callable[[Config], Mapping[str, float]] | None,
) -> Features | None:
    """A function of a config as ``Features``."""
    is_ready = features is None or isinstance(features, Features)
    return features if is_ready else Features(features)  # type: ignore[return-value,arg-type]
