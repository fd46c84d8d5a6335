"""A fitted surrogate and a space of very many subspaces come in; a few subspaces go out.

Where the subspaces are too many to visit (appendix B.1.3 of the AttnBO paper), EI is looked at on
configs drawn from random subspaces and from those that are one structural change away from the
best configs so far; the subspaces of the best of them are then searched as usual.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from nasbo.acquisition.improvement import score_rows
from nasbo.history.data import Data
from nasbo.space import Config, Space, Subspace
from nasbo.space.neighbours import structural_neighbours
from nasbo.surrogates.base import Surrogate

N_RANDOM = 128
N_BEST = 4
N_NEIGHBOURS = 32
"""Structural neighbours that are looked at around each of the best configs."""


def promising_subspaces(
    surrogate: Surrogate, space: Space, observations: Data, rng: Generator, n: int
) -> list[Subspace]:
    """At most ``n`` different subspaces in which log-EI was found to be largest, best first."""
    configs = [space.sample(rng) for _ in range(N_RANDOM)]
    order = np.argsort(-observations.scores, kind="stable")
    homes = []
    for row in order[:N_BEST]:
        subspace = observations.subspaces[row]
        homes.append((subspace, observations.x[row]))
        config = subspace.decode(observations.x[row])
        near = list(structural_neighbours(space, subspace, config, rng))
        picked = rng.permutation(len(near))[:N_NEIGHBOURS]
        configs += [near[at] for at in picked]
    rows = homes + [_place(space, config) for config in configs]
    scores = np.concatenate(score_rows(surrogate, [(s, x[None]) for s, x in rows]))
    ranked = [rows[at][0] for at in np.argsort(-scores, kind="stable")]
    different = {subspace.index: subspace for subspace in reversed(ranked)}
    first_seen = dict.fromkeys(subspace.index for subspace in ranked)
    return [different[index] for index in first_seen][:n]


def _place(space: Space, config: Config) -> tuple[Subspace, np.ndarray]:
    subspace = space.subspace_of(config)
    return subspace, subspace.encode(config)
