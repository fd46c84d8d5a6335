"""History comes in; configs by Thompson sampling over subspaces and inside them go out."""

from __future__ import annotations

from functools import partial
from typing import cast

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from nasbo.acquisition import Found
from nasbo.acquisition.box import Box
from nasbo.acquisition.choose import MAX_VISITED_SUBSPACES
from nasbo.acquisition.maximise import Starts, starting_rows
from nasbo.gp.pathwise import PosteriorDraw
from nasbo.gp.slice import slice_sample
from nasbo.history.data import Data
from nasbo.methods.ascent import maximise_score
from nasbo.methods.base import Task
from nasbo.methods.modelled import BatchExclusion, IsTaken, SurrogateMethod
from nasbo.space import Subspace
from nasbo.surrogates.base import Surrogate
from nasbo.surrogates.independent import IndependentGPs, SubspaceGP

Array = NDArray[np.float64]

MOVES = 12
"""Moves of the slice sampler from the MAP estimate."""
N_UNSEEN = 8
"""Subspaces without results that take part where there are too many to visit all."""
STARTS = Starts(uniform=48, around_own_best=12, around_best=24, projected=2)


class BanditsBO(SurrogateMethod):
    """Bandits-BO (Nguyen et al. 2020) as appendix B.2 of the AttnBO paper describes it.

    Each subspace is an arm with a GP of its own (Matérn-5/2) whose hyperparameters are drawn by
    slice sampling. A function is drawn from the posterior of every arm; the arm whose function has
    the largest maximum is pulled at that maximum. A batch draws anew for each of its configs, with
    the earlier ones and all running ones as pending.
    """

    score_name = "draw"

    def make_surrogate(self, task: Task) -> IndependentGPs:
        return IndependentGPs(self.space, partial(learn_by_slices, rng=task.rng))

    def choose(self, surrogate: Surrogate, observations: Data, task: Task) -> list[Found]:
        arms = cast(IndependentGPs, surrogate)
        is_taken = BatchExclusion(task)
        chosen: list[Found] = []
        while len(chosen) < task.n:
            found = self._pull(arms, observations, task, is_taken)
            if found is None:
                break
            chosen.append(found)
            is_taken.add(found.subspace, found.x)
            arms = arms.with_pending([found.subspace], [found.x])
        return chosen

    def _pull(
        self, arms: IndependentGPs, observations: Data, task: Task, is_taken: IsTaken
    ) -> Found | None:
        boxes = [Box(subspace) for subspace in self._arms(observations, task.rng)]
        best: Found | None = None
        starts = starting_rows(boxes, observations, task.rng, STARTS)
        for box, rows in zip(boxes, starts, strict=True):
            draw = PosteriorDraw(arms.model(box.subspace), task.rng)
            found = _largest(box, draw, rows, is_taken)
            if found is not None and (best is None or found.score > best.score):
                best = found
        return best

    def _arms(self, observations: Data, rng: Generator) -> list[Subspace]:
        """All subspaces, or those with results and a few others where there are too many."""
        if self.space.n_subspaces <= MAX_VISITED_SUBSPACES:
            return list(self.space.subspaces())
        order = np.argsort(-observations.scores, kind="stable")[:MAX_VISITED_SUBSPACES]
        arms = [observations.subspaces[at] for at in order]
        arms += [self.space.random_subspace(rng) for _ in range(N_UNSEEN)]
        return list({arm.index: arm for arm in arms}.values())


def learn_by_slices(
    model: SubspaceGP, subspaces: list[Subspace], x: list[Array], z: Tensor, rng: Generator
) -> None:
    """Learn with hyperparameters drawn from their posterior, from the MAP estimate on."""
    model.learn(subspaces, x, z)
    marginal = model.marginal(subspaces, x, z)
    widths = 0.5 * np.array(model.priors.sds)
    draws = slice_sample(
        lambda theta: -marginal.value(theta), model.theta.numpy(), widths, 1, rng, thin=MOVES
    )
    model.theta = torch.from_numpy(draws[-1])
    with torch.no_grad():
        model.condition(subspaces, x, z)


def _largest(box: Box, draw: PosteriorDraw, starts: Array, is_taken: IsTaken) -> Found | None:
    rows, scores = maximise_score(box, draw, starts)
    for row, score in zip(rows, scores, strict=True):
        if not is_taken(box.subspace, row):
            return Found(box.subspace, row, float(score))
    return None
