"""Bayesian optimisation with one surrogate: fit, then maximise an acquisition in the subspaces."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nasbo.acquisition import Acquisition, Avoided, Chooser, Found, SampledLogEI
from nasbo.history import PREDICTION
from nasbo.methods.base import Method, Suggestion, Task
from nasbo.surrogates.base import Surrogate

Array = NDArray[np.float64]

NOTHING = math.log(1e-3)
"""A log-EI below this, in standard deviations of the scores, expects no improvement."""


class SurrogateMethod(Method):
    """Fits one surrogate per call; a subclass says which, and may choose configs its own way."""

    @abstractmethod
    def make_surrogate(self, task: Task) -> Surrogate:
        """The surrogate, not fitted."""

    def make_acquisition(self) -> Acquisition:
        """The acquisition, not prepared."""
        return SampledLogEI()

    def propose(self, task: Task) -> list[Suggestion]:
        data = task.data
        started = time.perf_counter()
        surrogate = self.make_surrogate(task)
        surrogate.fit(data)
        fit_s = round(time.perf_counter() - started, 3)
        acquisition = self.make_acquisition().prepare(surrogate, data)
        surrogate = surrogate.with_pending(*task.running)
        chooser = self.make_chooser(task)
        found, info = self.choose(acquisition, surrogate, chooser, task)
        info = {"fit_s": fit_s} | info
        return [describe(acquisition, surrogate, one, info) for one in found]

    def make_chooser(self, task: Task) -> Chooser:
        """What chooses configs under an acquisition."""
        return Chooser(self.space, task.data, task.rng, avoided(task))

    def choose(
        self, acquisition: Acquisition, surrogate: Surrogate, chooser: Chooser, task: Task
    ) -> tuple[list[Found], dict[str, Any]]:
        """The next configs, best first, and what is to be said of them all."""
        return chooser.choose(acquisition, surrogate, task.n), {}


def describe(
    acquisition: Acquisition, surrogate: Surrogate, found: Found, info: dict[str, Any]
) -> Suggestion:
    """A config with what the surrogate thought of it."""
    with torch.no_grad():
        mean, variance = surrogate.posterior(found.subspace, torch.from_numpy(found.x[None]))
    z, sd = float(mean), float(variance.sqrt())
    ends = [surrogate.scale.to_score(z + k * sd) for k in (0, -1, 1)]
    thought = {acquisition.name: found.score, **dict(zip(PREDICTION, ends, strict=True))}
    if acquisition.name == "log_ei" and found.score < NOTHING:
        thought["expects_nothing"] = True
    return Suggestion(found.config, "model", info | thought)


def avoided(task: Task) -> Avoided:
    """What is not to be suggested: known configs, and near-twins of running ones."""
    taken = task.taken.copy()
    return Avoided(lambda subspace, x: subspace.decode(x) in taken, *task.running)
