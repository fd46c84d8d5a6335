"""Base class of Bayesian optimisation methods: one surrogate and one acquisition."""

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
"""log-EI, in standard deviations of the scores, below which no improvement is expected."""
MAX_EXPLAINED_ROWS = 150
"""Rows for an explanation: enough to learn how units share, in a second
instead of four for 1,000 rows."""
NO_ATTENTION = "the surrogate has no attention"


class SurrogateMethod(Method):
    """Fits one surrogate per call. A subclass makes the surrogate and may
    choose configs its own way.

    Attributes:
        max_explained_rows: maximum number of results that an explanation is fitted on.
        finds_noise: whether the surrogate's noise estimate is good enough to rank trials by it.
    """

    max_explained_rows: int = MAX_EXPLAINED_ROWS
    finds_noise: bool = True

    @abstractmethod
    def make_surrogate(self, task: Task) -> Surrogate:
        """The unfitted surrogate."""

    def make_acquisition(self) -> Acquisition:
        """The acquisition, before ``prepare``."""
        return SampledLogEI()

    def acquisition_for(self, task: Task) -> Acquisition:
        """The acquisition for a task, which may be one of several objectives."""
        return self.make_acquisition()

    def propose(self, task: Task) -> list[Suggestion]:
        data = task.data
        started = time.perf_counter()
        surrogate = self.make_surrogate(task)
        surrogate.fit(data)
        fit_s = round(time.perf_counter() - started, 3)
        estimates = estimate_tried(surrogate, task) if self.finds_noise else {}
        acquisition = self.acquisition_for(task).prepare(surrogate, data)
        surrogate = surrogate.with_pending(*task.running)
        chooser = self.make_chooser(task)
        found, info = self.choose(acquisition, surrogate, chooser, task)
        info = {"fit_s": fit_s} | info
        return told_first([describe(acquisition, surrogate, one, info) for one in found], estimates)

    def explain(self, history: View) -> Explanation:
        """What the surrogate learns from the best results and a thinned part of the others."""
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
        """What the surrogate predicts for a trial, fitted once on all other results."""
        # A twin shares the training of the trial: its result would give the answer away.
        rows = [row for row in history.rows() if _training(row[0]) != _training(trial)]
        if len(rows) < 2:
            return Why(trial, "fewer than two other results so far")
        try:
            surrogate = self.fit_to_explain(rows)
        except ArithmeticError as error:
            return Why(trial, f"the surrogate could not be trained: {error}")
        return explain_trial(surrogate, history, trial, [one for one, _ in rows])

    def fit_to_explain(self, rows: Sequence[tuple[Trial, float]]) -> Surrogate:
        """The surrogate, fitted to trials and their scores."""
        surrogate = self.make_surrogate(Task.empty(self.space, self.seed))
        surrogate.fit(Data.of_trials(self.space, rows))
        return surrogate

    def attention_maps(self, surrogate: Surrogate, history: View) -> tuple[list[AttentionMap], str]:
        """Attention maps of a fitted surrogate, or why there are none."""
        return [], NO_ATTENTION

    def make_chooser(self, task: Task) -> Chooser:
        """Chooses the batch under an acquisition."""
        return Chooser(self.space, task.data, task.rng, avoided(task))

    def choose(
        self, acquisition: Acquisition, surrogate: Surrogate, chooser: Chooser, task: Task
    ) -> tuple[list[Found], dict[str, Any]]:
        """The next configs, best first, and info that all of them share."""
        return chooser.choose(acquisition, surrogate, task.n), {}


def describe(
    acquisition: Acquisition, surrogate: Surrogate, found: Found, info: dict[str, Any]
) -> Suggestion:
    """A config as a suggestion, with the surrogate's prediction in its info."""
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
    """Number of the trial whose training produced the result."""
    return trial.id if trial.twin is None else trial.twin


def avoided(task: Task) -> Avoided:
    """Configs not to suggest: known ones, and near-duplicates of pending ones."""
    taken = task.taken.copy()
    return Avoided(lambda subspace, x: subspace.decode(x) in taken, *task.running)
