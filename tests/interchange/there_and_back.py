"""Configs of a space as configs of another one that was read back, both ways."""

from __future__ import annotations

import numpy as np

from nasbo.interchange.listing import Translation


def check_same_configs(one: Translation, other: Translation, n: int = 60) -> None:
    """Every config of either space is one of the other, with the same values elsewhere."""
    rng = np.random.default_rng(0)
    for here, there in ((one, other), (other, one)):
        for _ in range(n):
            config = here.space.sample(rng)
            values = here.values(config)
            again = there.config(values)
            assert there.values(again) == values
            assert here.config(there.values(again)) == config
