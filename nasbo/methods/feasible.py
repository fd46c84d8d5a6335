"""Check that some config keeps to the limits of a search."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nasbo.errors import NasboError
from nasbo.limits import MAX_DRAWS, Limits
from nasbo.methods.base import draw_anywhere
from nasbo.methods.exclusion import Excluded
from nasbo.space import Config, Space

_SHOWN = 200


def first_allowed(space: Space, limits: Callable[[Config], bool]) -> Config:
    """A config inside the limits.

    Raises:
        NasboError: none of ``MAX_DRAWS`` drawn configs is inside; the message has the values seen.
    """
    config = draw_anywhere(space, Excluded((), limits), np.random.default_rng(0))
    if config is None:
        raise NasboError(
            f"no config keeps to the constraints: none of {MAX_DRAWS:,} drawn ones did"
            f"{_seen(space, limits)}"
        )
    return config


def _seen(space: Space, limits: Callable[[Config], bool]) -> str:
    """The range of values of each limited quantity over random configs, for the error message."""
    if not isinstance(limits, Limits):
        return ""
    rng = np.random.default_rng(0)
    values: dict[str, list[float]] = {str(limit): [] for limit in limits.limits}
    for config in (space.sample(rng) for _ in range(_SHOWN)):
        for limit, value in zip(values, limits.values(config), strict=True):
            values[limit] += [] if value is None else [value]
    ranges = [
        f"{limit}: values from {min(found):g} to {max(found):g}"
        for limit, found in values.items()
        if found
    ]
    return f" ({'; '.join(ranges) or limits.violation(space.sample(rng))})"
