"""History comes in; the configs that two-step EI under the tree-structured GP chooses go out."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nasbo.acquisition import Found, log_ei
from nasbo.history.data import Data
from nasbo.methods.ascent import box_of, maximise_columns
from nasbo.methods.base import Task
from nasbo.methods.modelled import (
    BatchExclusion,
    IsTaken,
    SurrogateMethod,
    best_by_ei,
    visited_subspaces,
)
from nasbo.methods.options import check_choice
from nasbo.space import Space, Subspace
from nasbo.surrogates.base import Surrogate
from nasbo.surrogates.tree import FEATURES, TreeGP

Array = NDArray[np.float64]

ACQUISITIONS = ("two_step", "full")
N_PATH_STARTS = 32
N_LEAF_STARTS = 96
N_AROUND = 16


class Tree(SurrogateMethod):
    """Bayesian optimisation with tree-structured dependencies (Jenatton et al., ICML 2017).

    Two-step EI (section 3.2): first the path and its shared parameters with the largest EI of
    z' c (eq. 6), then the leaf's own parameters with the largest EI of the whole score (eq. 5),
    the shared ones held. Further configs of a batch take the earlier ones as pending.

    Args:
        space: what to search.
        seed: of all random numbers.
        acquisition: ``two_step``, or ``full``: eq. 5 maximised in every leaf.
        features: of shared parameters, ``linear`` (section 2.4) or ``fourier`` (section 4.3).
    """

    def __init__(
        self,
        space: Space,
        seed: int = 0,
        *,
        acquisition: str = "two_step",
        features: str = "linear",
    ) -> None:
        super().__init__(space, seed)
        check_choice("acquisition", acquisition, ACQUISITIONS)
        check_choice("features", features, FEATURES)
        self.acquisition, self.features = acquisition, features

    def make_surrogate(self, task: Task) -> TreeGP:
        return TreeGP(self.space, self.features)

    def choose(self, surrogate: Surrogate, observations: Data, task: Task) -> list[Found]:
        if self.acquisition == "full":
            return best_by_ei(surrogate, observations, task)
        chosen: list[Found] = []
        is_taken = BatchExclusion(task)
        model = cast(TreeGP, surrogate)
        while len(chosen) < task.n:
            found = self._two_steps(model, observations, task, is_taken)
            if found is None:
                break
            chosen.append(found)
            is_taken.add(found.subspace, found.x)
            model = model.with_pending([found.subspace], [found.x])
        return chosen

    def _two_steps(
        self, model: TreeGP, observations: Data, task: Task, is_taken: IsTaken
    ) -> Found | None:
        subspaces = visited_subspaces(model, observations, task)
        paths = [self._best_on_path(model, subspace, task) for subspace in subspaces]
        ranked = sorted(zip(paths, subspaces, strict=True), key=lambda one: -one[0][1])
        for (x, _), subspace in ranked:
            found = self._best_in_leaf(model, subspace, x, task, is_taken)
            if found is not None:
                return found
        return None

    def _best_on_path(self, model: TreeGP, subspace: Subspace, task: Task) -> tuple[Array, float]:
        """Step one in one path: a row with the best shared parameters, and its path EI."""

        def score(x: Tensor) -> Tensor:
            mean, variance = model.path_posterior([(subspace, x)])
            return log_ei(mean, variance, model.incumbent())

        columns = model.design.shared_columns(subspace)
        starts = box_of([subspace.free[at] for at in columns]).candidates(N_PATH_STARTS, task.rng)
        middle = np.full(subspace.n_free, 0.5)
        x, scores = maximise_columns(subspace, middle, columns, score, starts)
        return x[0], float(scores[0])

    def _best_in_leaf(
        self, model: TreeGP, subspace: Subspace, x: Array, task: Task, is_taken: IsTaken
    ) -> Found | None:
        """Step two: the leaf's own parameters, or all of them where those are used up."""

        def score(x: Tensor) -> Tensor:
            mean, variance = model.posterior(subspace, x)
            return log_ei(mean, variance, model.incumbent())

        for columns in (model.design.own_columns(subspace), list(range(subspace.n_free))):
            box = box_of([subspace.free[at] for at in columns])
            starts = box.candidates(N_LEAF_STARTS, task.rng)
            if near := model.best_rows(subspace):
                best = np.repeat(np.stack(near)[:, columns], N_AROUND, 0)
                starts = np.concatenate([starts, box.perturb(best, task.rng)])
            rows, scores = maximise_columns(subspace, x, columns, score, starts)
            for row, value in zip(rows, scores, strict=True):
                if not is_taken(subspace, row):
                    return Found(subspace, row, float(value))
        return None
