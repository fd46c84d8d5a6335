"""Slices through a surrogate: its posterior along one parameter of a good config."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from nasbo.history import Trial, View
from nasbo.methods.explanation import Slice
from nasbo.methods.typical import Place, Seen
from nasbo.space import Coordinate, Parameter, Value
from nasbo.surrogates.base import Surrogate, as_batches

N_POINTS = 25
"""So many values of a parameter that has more."""
MAX_SLICES = 64


def slices_through(surrogate: Surrogate, history: View, known: Sequence[Trial]) -> list[Slice]:
    """A slice per coordinate, each through the best trial that has it.

    Args:
        surrogate: fitted on the known trials.
        history: of the trials.
        known: they say which values are typical, where a change brings parameters into being.
    """
    seen = Seen.of_trials(history, known)
    targets = [*_targets(history).values()][:MAX_SLICES]
    grids = [_grid(one.parameter) for _, one in targets]
    configs = [
        seen.changed(trial, one, value)
        for (trial, one), grid in zip(targets, grids, strict=True)
        for value in grid
    ]
    if not configs:
        return []
    subspaces = [history.space.subspace_of(config) for config in configs]
    x = [one.encode(config) for one, config in zip(subspaces, configs, strict=True)]
    with torch.no_grad():
        means, variances = surrogate.posteriors(as_batches(subspaces, x))
    to_score = surrogate.scale.to_score
    rows = []
    for mean, sd in zip(means.tolist(), variances.clamp(min=0).sqrt().tolist(), strict=True):
        median, *ends = (history.score(to_score(mean + k * sd)) for k in (0, -1, 1))
        rows.append((median, min(ends), max(ends)))
    own = iter(rows)
    return [
        Slice(one, trial, tuple(grid), tuple(next(own) for _ in grid))
        for (trial, one), grid in zip(targets, grids, strict=True)
    ]


def _targets(history: View) -> dict[Place, tuple[Trial, Coordinate]]:
    """Each coordinate and the best trial that has it."""
    found: dict[Place, tuple[Trial, Coordinate]] = {}
    for trial in history.best_per_subspace():
        for one in history.subspace(trial).coordinates:
            found.setdefault((one.name, one.index), (trial, one))
    return found


def _grid(parameter: Parameter) -> list[Value]:
    """All values, or evenly many over the range."""
    if 0 < parameter.n_levels <= N_POINTS:
        return [parameter.value_at(level) for level in range(parameter.n_levels)]
    values = [parameter.from_unit(unit) for unit in np.linspace(0, 1, N_POINTS).tolist()]
    return list(dict.fromkeys(values))
