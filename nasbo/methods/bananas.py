"""BANANAS: an ensemble of neural networks, and mutations of the best configs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from nasbo.acquisition.improvement import LogEI
from nasbo.gp.rows import as_batches, batches_of
from nasbo.gp.transform import Scale, model_scale
from nasbo.gp.units import Layout
from nasbo.history import PREDICTION, SCORED_BY
from nasbo.history.data import Data
from nasbo.methods.base import Method, Suggestion, Task, draw_untried
from nasbo.methods.evolution import mutate
from nasbo.methods.exclusion import Excluded
from nasbo.methods.options import check_choice, check_count
from nasbo.space import Config, Space
from nasbo.surrogates.mlp_ensemble import MLPEnsemble

ACQUISITIONS = ("its", "ei")
N_PARENTS = 10
N_CANDIDATES = 100
_TRIES = 5
"""Mutations per wanted candidate, of which some are known already."""


@dataclass(frozen=True)
class Candidates:
    """Untried configs and the numbers of the trials that they are mutations of."""

    configs: list[Config]
    parents: list[int | None]


class Bananas(Method):
    """Ensemble of neural networks and independent Thompson sampling (White et al., AAAI 2021).

    Five small networks are trained on all results. Candidates are mutations of the best configs:
    one of their active parameters gets another value. Each candidate gets a number drawn from the
    normal distribution with the mean and the standard deviation of the networks' predictions
    (independent Thompson sampling), and the largest numbers win; with ``ei`` the largest expected
    improvements do.

    Departures: the paper's path encoding exists only for cells. Configs are rows of the flattened
    space instead, as for ``gp``: choices one-hot, numbers in the unit cube, inactive parameters at
    the middle of their range. The networks have 3 layers of 32 units instead of 10 of 20. The loss
    is the absolute error of the scores without the long tail of bad ones, instead of the paper's
    error relative to the best.

    Args:
        space: what to search.
        seed: of all random numbers.
        acquisition: ``its`` (independent Thompson sampling) or ``ei`` (expected improvement).
        refit_every: the networks are trained again after so many results (10 in the paper), and
            configs are random before that. They see the first results by number, so that the same
            history gives the same networks.
        parents: how many of the best configs are mutated.
    """

    def __init__(
        self,
        space: Space,
        seed: int = 0,
        *,
        acquisition: str = "its",
        refit_every: int = 1,
        parents: int = N_PARENTS,
    ) -> None:
        super().__init__(space, seed)
        check_choice("acquisition", acquisition, ACQUISITIONS)
        check_count("refit_every", refit_every)
        check_count("parents", parents)
        self.acquisition, self.refit_every, self.parents = acquisition, refit_every, parents
        self._layout = Layout(space)
        self._fitted: tuple[bytes, MLPEnsemble] = b"", MLPEnsemble()

    def propose(self, task: Task) -> list[Suggestion]:
        taken = task.taken.copy()
        n_fitted = len(task.rows) // self.refit_every * self.refit_every
        chosen = self._chosen(task, n_fitted, taken) if n_fitted >= 2 else []
        fill = islice(draw_untried(self.space, taken, task.rng), task.n - len(chosen))
        return chosen + [Suggestion(config, "model", {"parent": None}) for config in fill]

    def _chosen(self, task: Task, n_fitted: int, taken: Excluded) -> list[Suggestion]:
        """The best candidates by the acquisition, at most as many as are wanted."""
        started = time.perf_counter()
        ensemble, scale = self._fit(task.data.take(range(n_fitted)))
        fit_s = round(time.perf_counter() - started, 3)
        candidates = self._candidates(task, taken)
        if not candidates.configs:
            return []
        mean, sd = ensemble.predict(self._features(candidates.configs))
        best = float(scale.from_score(task.data.scores[:n_fitted]).max())
        name, values = self._acquisition_values(mean, sd, best, task.rng)
        chosen = []
        for at in np.argsort(-values, kind="stable")[: task.n]:
            taken.add(candidates.configs[at])
            ends = [scale.to_score(float(mean[at] + k * sd[at])) for k in (0, -1, 1)]
            info = {"fit_s": fit_s, "parent": candidates.parents[at]}
            info |= {SCORED_BY: name, name: float(values[at])}
            info |= dict(zip(PREDICTION, ends, strict=True))
            chosen.append(Suggestion(candidates.configs[at], "model", info))
        return chosen

    def _fit(self, data: Data) -> tuple[MLPEnsemble, Scale]:
        """The networks trained on data; they are kept until the data change."""
        X = self._layout.rows(batches_of(data)).features
        z, scale = model_scale(data.scores, data.n_design)
        key = X.numpy().tobytes() + z.tobytes()
        if key != self._fitted[0]:
            rng = np.random.default_rng([self.seed, len(data)])
            ensemble = MLPEnsemble()
            ensemble.fit(X, torch.from_numpy(z), int(rng.integers(2**31)))
            self._fitted = key, ensemble
        return self._fitted[1], scale

    def _candidates(self, task: Task, taken: Excluded) -> Candidates:
        """Different untried mutations of the best configs, each of a random one of them."""
        best = sorted(task.rows, key=lambda row: row[1], reverse=True)[: self.parents]
        seen, found = taken.copy(), Candidates([], [])
        n = max(N_CANDIDATES, 2 * task.n)
        for _ in range(_TRIES * n):
            parent, _ = best[int(task.rng.integers(len(best)))]
            config = mutate(self.space, parent.config, task.rng)
            if config in seen:
                continue
            seen.add(config)
            found.configs.append(config)
            found.parents.append(parent.id)
            if len(found.configs) == n:
                break
        return found

    def _features(self, configs: Sequence[Config]) -> Tensor:
        """Shape (n, n_features)."""
        encoded = [self.space.encode(config) for config in configs]
        batches = as_batches([subspace for subspace, _ in encoded], [x for _, x in encoded])
        return self._layout.rows(batches).features

    def _acquisition_values(
        self, mean: Tensor, sd: Tensor, best: float, rng: Generator
    ) -> tuple[str, NDArray[np.float64]]:
        """Name of the acquisition, and its values, shape (n,)."""
        if self.acquisition == "ei":
            return LogEI.name, LogEI(best).score(mean, sd.square()).numpy()
        return "draw", (mean + sd * torch.from_numpy(rng.standard_normal(len(mean)))).numpy()
