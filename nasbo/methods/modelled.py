"""A surrogate comes in; the configs of its largest expected improvement go out.

What the methods share that fit one surrogate and maximise log-EI in the subspaces.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasbo.acquisition import Found, maximise_per_subspace
from nasbo.acquisition.choose import MAX_VISITED_SUBSPACES
from nasbo.acquisition.maximise import Batch
from nasbo.acquisition.sampled import promising_subspaces
from nasbo.history import PREDICTION
from nasbo.history.data import Data
from nasbo.methods.base import Method, Suggestion, Task
from nasbo.space import Subspace
from nasbo.surrogates.base import Surrogate

Array = NDArray[np.float64]
Place = tuple[Subspace, Array]
IsTaken = Callable[[Subspace, Array], bool]

N_PROMISING = 8
NOTHING = math.log(1e-3)
"""A log-EI below this, in standard deviations of the scores, expects no improvement."""


class SurrogateMethod(Method):
    """Fits one surrogate per call; a subclass says which, and may choose configs its own way."""

    score_name = "log_ei"

    @abstractmethod
    def make_surrogate(self, task: Task) -> Surrogate:
        """The surrogate, not fitted."""

    def propose(self, task: Task) -> list[Suggestion]:
        observations = task.data
        started = time.perf_counter()
        surrogate = self.make_surrogate(task)
        surrogate.fit(observations)
        info = {"fit_s": round(time.perf_counter() - started, 3)}
        places = pending_places(task)
        surrogate = surrogate.with_pending([s for s, _ in places], [x for _, x in places])
        found = self.choose(surrogate, observations, task)
        return [self.describe(surrogate, one, info) for one in found]

    def choose(self, surrogate: Surrogate, observations: Data, task: Task) -> list[Found]:
        """The next configs: the best of each subspace by log-EI, best first."""
        return best_by_ei(surrogate, observations, task)

    def describe(self, surrogate: Surrogate, found: Found, info: dict[str, Any]) -> Suggestion:
        """A config with what the surrogate thought of it."""
        with torch.no_grad():
            mean, variance = surrogate.posterior(found.subspace, torch.from_numpy(found.x[None]))
        thought = {self.score_name: found.score} | prediction(surrogate, mean, variance)
        if self.score_name == "log_ei":
            thought |= expectation(found.score)
        return Suggestion(found.subspace.decode(found.x), "model", info | thought)


def prediction(surrogate: Surrogate, mean: Tensor, variance: Tensor) -> dict[str, Any]:
    """The predicted score of a config and its interval of one standard deviation."""
    z, sd = float(mean), float(variance.sqrt())
    ends = (surrogate.scale.to_score(z + k * sd) for k in (0, -1, 1))
    return dict(zip(PREDICTION, ends, strict=True))


def expectation(log_ei: float) -> dict[str, Any]:
    """That no improvement is expected of a config, where that is so."""
    return {"expects_nothing": True} if log_ei < NOTHING else {}


def best_by_ei(surrogate: Surrogate, observations: Data, task: Task) -> list[Found]:
    """``task.n`` configs, all different; those found earlier are pending for the later ones.

    Each pass maximises log-EI in every subspace, or in promising ones where there are too many.
    """
    chosen: list[Found] = []
    is_taken = BatchExclusion(task)
    while len(chosen) < task.n:
        subspaces = visited_subspaces(surrogate, observations, task)
        found = maximise_per_subspace(surrogate, subspaces, observations, task.rng, is_taken)
        found = found[: task.n - len(chosen)]
        if not found:
            break
        chosen += found
        for one in found:
            is_taken.add(one.subspace, one.x)
        if len(chosen) < task.n:
            surrogate = surrogate.with_pending([f.subspace for f in found], [f.x for f in found])
    return chosen


def visited_subspaces(surrogate: Surrogate, observations: Data, task: Task) -> list[Subspace]:
    """All subspaces, or the promising ones where there are too many to visit."""
    space = task.space
    if space.n_subspaces <= MAX_VISITED_SUBSPACES:
        return list(space.subspaces())
    wanted = min(max(task.n, N_PROMISING), 2 * N_PROMISING)
    return promising_subspaces(surrogate, space, observations, task.rng, wanted)


class BatchExclusion:
    """Whether a config must not be suggested: known before, or close to a running or added one."""

    def __init__(self, task: Task) -> None:
        self._excluded = task.taken.copy()
        places = pending_places(task)
        self._batch = Batch(self._is_known, [s for s, _ in places], [x for _, x in places])

    def __call__(self, subspace: Subspace, x: Array) -> bool:
        return self._batch(subspace, x)

    def add(self, subspace: Subspace, x: Array) -> None:
        """Take one more, and its near-twins."""
        self._excluded.add(subspace.decode(x))
        self._batch.add(subspace, x)

    def _is_known(self, subspace: Subspace, x: Array) -> bool:
        return subspace.decode(x) in self._excluded


def pending_places(task: Task) -> list[Place]:
    """The running configs as places in their subspaces."""
    subspaces = [task.space.subspace_of(config) for config in task.pending]
    return [(s, s.encode(config)) for s, config in zip(subspaces, task.pending, strict=True)]
