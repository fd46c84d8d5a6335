"""Starting rows of the acquisition optimiser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nasbo.history.data import Data
from nasbo.space import Subspace

Array = NDArray[np.float64]

REDRAWS = 8
"""How often starts are drawn again if too few lie inside the limits."""
N_BEST = 3
"""Number of best configs, of the subspace and of all subspaces, that starts are drawn around."""


@dataclass(frozen=True)
class Starts:
    """Number of starting rows per subspace, by kind."""

    uniform: int = 96
    around_own_best: int = 16
    around_best: int = 40
    projected: int = 4

    def draw(self, subspaces: Sequence[Subspace], data: Data, rng: Generator) -> list[Array]:
        """Uniform rows, and rows around the best configs of the subspace and of all subspaces."""
        home = np.array([subspace.index for subspace in data.subspaces])
        order = np.argsort(-data.scores, kind="stable")
        rows = []
        for subspace in subspaces:
            parts = [subspace.candidates(self.uniform, rng)]
            for at in order[home[order] == subspace.index][:N_BEST]:
                n = self.around_best if at in order[:N_BEST] else self.around_own_best
                parts.append(subspace.perturb(np.repeat(data.x[at][None], n, 0), rng))
            for at in order[:N_BEST]:
                if home[at] != subspace.index:
                    there, x = data.subspaces[at], data.x[at]
                    projected = subspace.project(there, x, self.projected, rng)
                    parts += [projected, subspace.perturb(projected, rng)]
            rows.append(np.concatenate(parts))
        if data.allows is None:
            return rows
        return [_inside(s, x, data.allows, rng) for s, x in zip(subspaces, rows, strict=True)]


def _inside(
    subspace: Subspace, x: Array, allows: Callable[[Subspace, Array], bool], rng: Generator
) -> Array:
    """Replace rows outside the limits by new draws; all rows are returned if no draw is inside."""
    kept = [row for row in x if allows(subspace, row)]
    for _ in range(REDRAWS):
        if 2 * len(kept) >= len(x):
            break
        kept += [row for row in subspace.candidates(len(x), rng) if allows(subspace, row)]
    return np.array(kept[: len(x)]) if kept else x
