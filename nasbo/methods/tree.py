"""Two-step EI under the tree-structured GP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.acquisition import Acquisition, Chooser, Found, LogEI
from nasbo.acquisition.optimise import IsTaken, joined, maximise
from nasbo.methods.base import Task
from nasbo.methods.modelled import SurrogateMethod
from nasbo.methods.options import check_choice
from nasbo.methods.sequential import one_by_one
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

    def choose(
        self, acquisition: Acquisition, surrogate: Surrogate, chooser: Chooser, task: Task
    ) -> tuple[list[Found], dict[str, Any]]:
        if self.acquisition == "full":
            return super().choose(acquisition, surrogate, chooser, task)
        two_steps = _TwoSteps(cast(LogEI, acquisition), task)

        def best(model: TreeGP) -> Found | None:
            subspaces = chooser.visited(acquisition, model, task.n)
            return two_steps.best(model, subspaces, chooser.avoided)

        found = one_by_one(cast(TreeGP, surrogate), chooser.avoided, best)
        return list(islice(found, task.n)), {}


@dataclass(frozen=True)
class _TwoSteps:
    """Two-step EI (section 3.2)."""

    improvement: LogEI
    task: Task

    def best(self, model: TreeGP, subspaces: Sequence[Subspace], is_taken: IsTaken) -> Found | None:
        """The config of the best path that has an untried one."""
        paths = [self._on_path(model, subspace) for subspace in subspaces]
        ranked = sorted(paths, key=lambda path: -path.score)
        leaves = (self._in_leaf(model, path.subspace, path.x, is_taken) for path in ranked)
        return next(filter(None, leaves), None)

    def _on_path(self, model: TreeGP, subspace: Subspace) -> Found:
        """Step one in one path: a row with the best shared parameters, and its path EI."""

        def score(x: Tensor) -> Tensor:
            return self.improvement.score(*model.path_posterior([(subspace, x)]))

        part = _Part(subspace, model.design.shared_columns(subspace), np.full(subspace.n_free, 0.5))
        return part.maximise(score, part.box.candidates(N_PATH_STARTS, self.task.rng))[0]

    def _in_leaf(
        self, model: TreeGP, subspace: Subspace, x: Array, is_taken: IsTaken
    ) -> Found | None:
        """Step two: the leaf's own parameters, or all of them where those are used up."""

        def score(x: Tensor) -> Tensor:
            return self.improvement.score(*model.posterior(subspace, x))

        for columns in (model.design.own_columns(subspace), list(range(subspace.n_free))):
            part = _Part(subspace, columns, x)
            starts = part.box.candidates(N_LEAF_STARTS, self.task.rng)
            if near := model.best_rows(subspace):
                best = np.repeat(np.stack(near)[:, columns], N_AROUND, 0)
                starts = np.concatenate([starts, part.box.perturb(best, self.task.rng)])
            for found in part.maximise(score, starts):
                if not is_taken(subspace, found.x):
                    return found
        return None


class _Part:
    """Some columns of a subspace's row; the others are held.

    Args:
        subspace: of the row.
        columns: those that may change.
        row: shape (n_free,).
    """

    def __init__(self, subspace: Subspace, columns: Sequence[int], row: Array) -> None:
        self.subspace = subspace
        self.box = Subspace(0, tuple(subspace.free[column] for column in columns), {})
        self._columns, self._row = torch.tensor(columns, dtype=torch.long), row

    def whole(self, part: Tensor) -> Tensor:
        """Whole rows, shape (n, n_free), with the columns of ``part``, (n, k)."""
        base = torch.from_numpy(self._row[None]).expand(len(part), -1)
        return base.index_copy(1, self._columns, part)

    def maximise(self, score: Callable[[Tensor], Tensor], starts: Array) -> list[Found]:
        """Whole rows of large scores, best first, from starts of the columns, shape (n, k)."""
        (pool,) = maximise(lambda some: score(self.whole(joined(some))), [(self.box, starts)])
        rows = zip(self.whole(torch.from_numpy(pool.x)).numpy(), pool.scores, strict=True)
        return [Found(self.subspace, x, float(value)) for x, value in rows]
