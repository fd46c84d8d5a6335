"""Posterior estimates of the noise-free scores of tried configs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from nasbo.history import Trial
from nasbo.history.data import Data
from nasbo.history.estimates import ESTIMATES
from nasbo.methods.base import Suggestion, Task
from nasbo.surrogates.base import ExactGP, Surrogate, batches_of
from nasbo.surrogates.independent import IndependentGPs
from nasbo.surrogates.several import SeveralSurrogates

MIN_NOISE = 1e-3
"""Noise variance, relative to that of the scores, below which trials are ranked by their values."""
N_ESTIMATED = 32
"""Maximum number of trials whose estimates are journaled with each decision about one objective."""


def estimate_tried(surrogate: Surrogate, task: Task) -> dict[str, Any]:
    """Estimates for the info of a decision's first suggestion.

    Args:
        surrogate: fitted on the task, without running configs.
        task: its rows are those of the surrogate, or include those that it is conditioned on.

    Returns:
        Under ``ESTIMATES`` the standard deviation ``noise_sd`` of the noise at the best config, and
        (mean, sd) of the noise-free scores of the best ``trials``; an empty entry if no noise was
        found. An empty dict for a surrogate without a noise variance.
    """
    n_estimated = N_ESTIMATED
    if isinstance(surrogate, SeveralSurrogates):  # a front may have any of the trials
        surrogate, n_estimated = surrogate.parts[0], len(task.rows)
    noise = noise_variance(surrogate, task.data)
    if noise is None:
        return {}
    candidates = [at for at, (trial, _) in enumerate(task.rows) if _may_be_best(trial)]
    if noise <= MIN_NOISE or not candidates:
        return {ESTIMATES: {}}
    with torch.no_grad():
        means, variances = surrogate.posteriors(batches_of(task.data.take(candidates)))
    order = means.argsort(descending=True, stable=True)[:n_estimated].tolist()
    found = {
        task.rows[candidates[at]][0].id: (float(means[at]), float(variances[at])) for at in order
    }
    best, _ = next(iter(found.values()))

    def spread(z: float, variance: float) -> float:
        """Half the width of the interval of one standard deviation, in scores."""
        low, high = (surrogate.scale.to_score(z + k * math.sqrt(variance)) for k in (-1, 1))
        return (high - low) / 2

    trials = {
        number: [surrogate.scale.to_score(z), spread(z, variance)]
        for number, (z, variance) in found.items()
    }
    return {ESTIMATES: {"noise_sd": spread(best, noise), "trials": trials}}


def told_first(suggestions: Sequence[Suggestion], info: dict[str, Any]) -> list[Suggestion]:
    """The suggestions, the first one with the info that concerns the whole decision."""
    return [
        replace(one, info=one.info | info) if at == 0 else one for at, one in enumerate(suggestions)
    ]


def noise_variance(surrogate: Surrogate, data: Data) -> float | None:
    """Noise variance on the model's scale, averaged over the rows if it
    differs between subspaces.
    """
    if isinstance(surrogate, ExactGP):
        return float(surrogate.noise_variance())
    if isinstance(surrogate, IndependentGPs):
        each = [float(surrogate.model(subspace).noise_variance()) for subspace in data.subspaces]
        return sum(each) / len(each)
    return None


def _may_be_best(trial: Trial) -> bool:
    """Whether a trial has a comparable value of its own; a twin shares another trial's training."""
    return trial.value is not None and trial.is_comparable and trial.twin is None
