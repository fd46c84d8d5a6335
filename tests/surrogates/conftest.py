"""Data for the tests of all surrogates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nasbo.history.data import Data
from nasbo.space import Config, Space

Observe = Callable[..., Data]


@pytest.fixture
def observe() -> Observe:
    """Uniform configs of a space with the scores of a function."""

    def build(
        space: Space, function: Callable[[Config], float], n: int = 20, seed: int = 0
    ) -> Data:
        rng = np.random.default_rng(seed)
        n_subspaces = min(space.n_subspaces, n)
        subspaces = [space.subspace(at % n_subspaces) for at in range(n)]
        x = [subspace.sample(1, rng)[0] for subspace in subspaces]
        y = [function(s.decode(row)) for s, row in zip(subspaces, x, strict=True)]
        return Data(space, subspaces, x, np.array(y), n_design=min(n, 2 * n_subspaces))

    return build
