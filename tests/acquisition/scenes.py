"""Choices under a fitted model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nasbo.acquisition import ACQUISITIONS, Avoided, Chooser, Found
from nasbo.acquisition.optimise import IsTaken
from nasbo.history.data import Data
from nasbo.space import Space, Subspace
from nasbo.testing.acquisitions import fitted

Array = NDArray[np.float64]


def never(subspace: Subspace, x: Array) -> bool:
    return False


def choose(
    space: Space, acquisition: str, n: int, data: Data, is_taken: IsTaken = never
) -> list[Found]:
    """Configs that are chosen under a fitted structured GP."""
    model = fitted(data)
    chooser = Chooser(space, data, np.random.default_rng(0), Avoided(is_taken))
    return chooser.choose(ACQUISITIONS[acquisition]().prepare(model, data), model, n)
