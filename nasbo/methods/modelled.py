"""Bayesian optimisation with one surrogate and an acquisition, maximised in the subspaces."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nasbo.acquisition import Acquisition, Avoided, Chooser, Found, LogEI, SampledLogEI
from nasbo.history import PREDICTION, SCORED_BY, Trial, View
from nasbo.history.data import Data
from nasbo.methods.base import Method, Suggestion, Task
from nasbo.methods.estimates import estimate_tried, told_first
from nasbo.methods.explanation import AttentionMap, Explanation, Why, thin
from nasbo.methods.slices import slices_through
from nasbo.methods.why import explain_trial, noise_sd
from nasbo.surrogates.base import Surrogate

Array = NDArray[np.float64]

NOTHING = math.log(1e-3)
"""A log-EI below this, in standard deviations of the scores, expects no improvement."""
MAX_EXPLAINED_ROWS = 150
"""Enough to find how units share, and a second instead of four at a thousand rows."""
NO_ATTENTION = "the surrogate has no attention"


class SurrogateMethod(Method):
    """Fits one surrogate per call; a subclass says which, and may choose configs its own way.

    Attributes:
        max_explained_rows: on how many results an explanation rests at most.
        finds_noise: whether the surrogate's noise is an estimate that trials may be ranked by.
    """

    max_explained_rows: int = MAX_EXPLAINED_ROWS
    finds_noise: bool = True

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
        estimates = estimate_tried(surrogate, task) if self.finds_noise else {}
        acquisition = self.make_acquisition().prepare(surrogate, data)
        surrogate = surrogate.with_pending(*task.running)
        chooser = self.make_chooser(task)
        found, info = self.choose(acquisition, surrogate, chooser, task)
        info = {"fit_s": fit_s} | info
        return told_first([describe(acquisition, surrogate, one, info) for one in found], estimates)

    def explain(self, history: View) -> Explanation:
        """What the surrogate has learned from the best results and a part of the others."""
        if len(history.rows()) < 2 or history.best is None:
            return Explanation("fewer than two results so far")
        rows = thin(history.rows(), self.max_explained_rows)
        try:
            surrogate = self.fit_to_explain(rows)
        except ArithmeticError as error:
            return Explanation(f"the surrogate could not be trained: {error}")
        slices = slices_through(surrogate, history, [trial for trial, _ in rows])
        maps, reason = (
            self.attention_maps(surrogate, history) if self.has_attention else ([], NO_ATTENTION)
        )
        lengths, noise = surrogate.lengthscales(), noise_sd(surrogate)
        return Explanation(reason, maps, noise, lengths, slices, len(rows))

    def why(self, history: View, trial: Trial) -> Why:
        """What the surrogate says about a trial; it is fitted once, on all other results."""
        # A twin has the result of the same training, which would give the answer away.
        rows = [row for row in history.rows() if _training(row[0]) != _training(trial)]
        if len(rows) < 2:
            return Why(trial, "fewer than two other results so far")
        try:
            surrogate = self.fit_to_explain(rows)
        except ArithmeticError as error:
            return Why(trial, f"the surrogate could not be trained: {error}")
        return explain_trial(surrogate, history, trial, [one for one, _ in rows])

    def fit_to_explain(self, rows: Sequence[tuple[Trial, float]]) -> Surrogate:
        """The surrogate, fitted on trials with their scores."""
        surrogate = self.make_surrogate(Task.empty(self.space, self.seed))
        surrogate.fit(Data.of_trials(self.space, rows))
        return surrogate

    def attention_maps(self, surrogate: Surrogate, history: View) -> tuple[list[AttentionMap], str]:
        """Attention maps of a fitted surrogate, or why there are none."""
        return [], NO_ATTENTION

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
    thought = {SCORED_BY: acquisition.name, acquisition.name: found.score}
    thought |= dict(zip(PREDICTION, ends, strict=True))
    if isinstance(acquisition, LogEI) and found.score < NOTHING:
        thought["expects_nothing"] = True
    return Suggestion(found.config, "model", info | thought)


def _training(trial: Trial) -> int:
    """Number of the trial whose training gave the result."""
    return trial.id if trial.twin is None else trial.twin


def avoided(task: Task) -> Avoided:
    """What is not to be suggested: known configs, and near-twins of running ones."""
    taken = task.taken.copy()
    return Avoided(lambda subspace, x: subspace.decode(x) in taken, *task.running)
