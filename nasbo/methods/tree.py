"""Tree-structured GP with two-step EI."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, cast

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from nasbo.acquisition import Acquisition, Chooser, Found, LogEI, Score
from nasbo.acquisition.optimise import joined, maximise
from nasbo.methods.base import Task
from nasbo.methods.modelled import SurrogateMethod
from nasbo.methods.options import check_choice
from nasbo.methods.sequential import one_by_one
from nasbo.space import Space, Subspace
from nasbo.surrogates.base import Batches, Surrogate
from nasbo.surrogates.tree import BASES, TreeGP

Array = NDArray[np.float64]

ACQUISITIONS = ("two_step", "full")
N_PATH_STARTS = 32
N_LEAF_STARTS = 96
N_AROUND = 16


class Tree(SurrogateMethod):
    """Bayesian optimisation with tree-structured dependencies (Jenatton et al., ICML 2017).

    Two-step EI (section 3.2): first the path and its shared parameters with the largest EI of
    z' c (eq. 6), then the leaf's own parameters with the largest EI of the whole score (eq. 5),
    the shared ones fixed. The earlier configs of a batch are pending for the later ones.

    Args:
        space: what to search.
        seed: of all random numbers.
        acquisition: ``two_step``, or ``full``: eq. 5 maximised in every leaf.
        basis: of shared parameters, ``linear`` (section 2.4) or ``fourier`` (section 4.3).
    """

    def __init__(
        self,
        space: Space,
        seed: int = 0,
        *,
        acquisition: str = "two_step",
        basis: str = "linear",
    ) -> None:
        super().__init__(space, seed)
        check_choice("acquisition", acquisition, ACQUISITIONS)
        check_choice("basis", basis, BASES)
        self.acquisition, self.basis = acquisition, basis

    def make_surrogate(self, task: Task) -> TreeGP:
        return TreeGP(self.space, self.basis)

    def choose(
        self, acquisition: Acquisition, surrogate: Surrogate, chooser: Chooser, task: Task
    ) -> tuple[list[Found], dict[str, Any]]:
        if self.acquisition == "full":
            return super().choose(acquisition, surrogate, chooser, task)
        improvement = cast(LogEI, acquisition)

        def best(model: TreeGP) -> Found | None:
            subspaces = chooser.visited(acquisition, model, task.n)
            paths = [_best_on_path(model, improvement, one, chooser.rng) for one in subspaces]
            ranked = sorted(paths, key=lambda path: -path.score)
            leaves = (_best_in_leaf(model, improvement, path, chooser) for path in ranked)
            return next(filter(None, leaves), None)

        found = one_by_one(cast(TreeGP, surrogate), chooser.avoided, best)
        return list(islice(found, task.n)), {}


def _best_on_path(model: TreeGP, improvement: LogEI, subspace: Subspace, rng: Generator) -> Found:
    """Step one on one path: the row with the best shared parameters, and its path EI."""
    part = _Part(subspace, model.design.shared_columns(subspace), np.full(subspace.n_free, 0.5))
    starts = part.box.candidates(N_PATH_STARTS, rng)
    return part.maximise(lambda rows: improvement.score(*model.path_posterior(rows)), starts)[0]


def _best_in_leaf(model: TreeGP, improvement: LogEI, path: Found, chooser: Chooser) -> Found | None:
    """Step two: the leaf's own parameters, or all of them if no untried
    values of those are left.
    """
    subspace = path.subspace
    for columns in (model.design.own_columns(subspace), list(range(subspace.n_free))):
        part = _Part(subspace, columns, path.x)
        starts = part.box.candidates(N_LEAF_STARTS, chooser.rng)
        if near := model.best_rows(subspace):
            best = np.repeat(np.stack(near)[:, columns], N_AROUND, 0)
            starts = np.concatenate([starts, part.box.perturb(best, chooser.rng)])
        for found in part.maximise(improvement.under(model), starts):
            if not chooser.avoided(subspace, found.x):
                return found
    return None


class _Part:
    """Some columns of a subspace's row; the others are fixed.

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

    def maximise(self, score: Score, starts: Array) -> list[Found]:
        """Whole rows of large scores, best first, from starts of the columns, shape (n, k)."""

        def score_whole(batches: Batches) -> Tensor:
            return score([(self.subspace, self.whole(joined(batches)))])

        (pool,) = maximise(score_whole, [(self.box, starts)])
        rows = zip(self.whole(torch.from_numpy(pool.x)).numpy(), pool.scores, strict=True)
        return [Found(self.subspace, x, float(value)) for x, value in rows]
