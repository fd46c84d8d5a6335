"""Bandits-BO: one GP per subspace, Thompson sampling over subspaces and inside them."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Any, cast

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from nasbo.acquisition import MAX_VISITED_SUBSPACES, Acquisition, Chooser, Found, Thompson
from nasbo.acquisition.optimise import joined, maximise
from nasbo.acquisition.starts import Starts
from nasbo.gp.pathwise import PosteriorDraw
from nasbo.gp.slice import slice_sample
from nasbo.history.data import Data
from nasbo.methods.base import Task
from nasbo.methods.modelled import SurrogateMethod
from nasbo.methods.sequential import one_by_one
from nasbo.space import Subspace
from nasbo.surrogates.base import Batches, Surrogate
from nasbo.surrogates.independent import IndependentGPs, SubspaceGP

Array = NDArray[np.float64]

MOVES = 12
"""Moves of the slice sampler from the MAP estimate."""
DRAWN_NOISE = (-8.0, 3.0)
"""Prior of the log noise variance, narrower than that of MAP fits: draws under the wider prior
would explain the few results of an arm as pure noise."""
N_UNSEEN = 8
"""Subspaces without results that are added where there are too many to visit all."""
STARTS = Starts(uniform=48, around_own_best=12, around_best=24, projected=2)


class BanditsBO(SurrogateMethod):
    """Bandits-BO (Nguyen et al. 2020) as appendix B.2 of the AttnBO paper describes it.

    Each subspace is an arm with a GP of its own (Matérn-5/2) whose hyperparameters are drawn by
    slice sampling. A function is drawn from the posterior of every arm; the arm whose function has
    largest maximum is pulled at that maximum. Functions are drawn anew for each config of a batch,
    with the earlier ones and all running configs as pending. The noise variance is a sample as
    well, so there are no noise-free estimates to rank by.
    """

    finds_noise = False

    def make_surrogate(self, task: Task) -> IndependentGPs:
        return IndependentGPs(self.space, partial(learn_by_slices, rng=task.rng))

    def make_acquisition(self) -> Acquisition:
        return Thompson()

    def choose(
        self, acquisition: Acquisition, surrogate: Surrogate, chooser: Chooser, task: Task
    ) -> tuple[list[Found], dict[str, Any]]:
        arms, pull = cast(IndependentGPs, surrogate), partial(self._pull, chooser, task)
        return list(islice(one_by_one(arms, chooser.avoided, pull), task.n)), {}

    def _pull(self, chooser: Chooser, task: Task, arms: IndependentGPs) -> Found | None:
        subspaces = self._arms(chooser.data, task.rng)
        starts = STARTS.draw(subspaces, chooser.data, task.rng)
        found = []
        for subspace, rows in zip(subspaces, starts, strict=True):
            draw = PosteriorDraw(arms.model(subspace), task.rng)
            (pool,) = maximise(partial(_at_rows, draw), [(subspace, rows)])
            if (best := pool.best_untaken(chooser.avoided)) is not None:
                found.append(Found(subspace, *best))
        return max(found, key=lambda one: one.score, default=None)

    def _arms(self, data: Data, rng: Generator) -> list[Subspace]:
        """All subspaces, or those with results and a few others if there are too many."""
        if self.space.n_subspaces <= MAX_VISITED_SUBSPACES:
            return list(self.space.subspaces())
        order = np.argsort(-data.scores, kind="stable")[:MAX_VISITED_SUBSPACES]
        arms = [data.subspaces[at] for at in order]
        arms += [self.space.random_subspace(rng) for _ in range(N_UNSEEN)]
        return list({arm.index: arm for arm in arms}.values())


def learn_by_slices(
    model: SubspaceGP, subspaces: list[Subspace], x: list[Array], z: Tensor, rng: Generator
) -> None:
    """Condition a GP with hyperparameters drawn by slice sampling that
    starts at the MAP estimate.
    """
    model.priors.means[model.noise], model.priors.sds[model.noise] = DRAWN_NOISE
    model.learn(subspaces, x, z)
    marginal = model.marginal(subspaces, x, z)
    widths = 0.5 * np.array(model.priors.sds)
    draws = slice_sample(
        lambda theta: -marginal.value(theta), model.theta.numpy(), widths, 1, rng, thin=MOVES
    )
    model.theta = torch.from_numpy(draws[-1])
    with torch.no_grad():
        model.condition(subspaces, x, z)


def _at_rows(draw: PosteriorDraw, batches: Batches) -> Tensor:
    return draw(joined(batches))
