"""Estimates of the noise-free scores of tried configs, where a surrogate has found noise."""

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

MIN_NOISE = 1e-3
"""A noise below this part of the variance of the scores is none: ranks are those of the values."""
N_ESTIMATED = 32
"""So many of the best trials are journaled with each decision: a bound, whatever their number."""


def estimate_tried(surrogate: Surrogate, task: Task) -> dict[str, Any]:
    """What a decision says of the configs that were tried: a part of its first suggestion's info.

    Args:
        surrogate: fitted on the task, without running configs.
        task: its rows are those of the surrogate, or more of them than it was conditioned on.

    Returns:
        Under ``ESTIMATES`` the standard deviation ``noise_sd`` of the noise at the best config, and
        (mean, sd) of the noise-free scores of the best ``trials``; nothing there where no noise
        was found. Nothing at all for a surrogate without a noise.
    """
    noise = noise_variance(surrogate, task.data)
    if noise is None:
        return {}
    candidates = [at for at, (trial, _) in enumerate(task.rows) if _may_be_best(trial)]
    if noise <= MIN_NOISE or not candidates:
        return {ESTIMATES: {}}
    with torch.no_grad():
        means, variances = surrogate.posteriors(batches_of(task.data.take(candidates)))
    order = means.argsort(descending=True, stable=True)[:N_ESTIMATED].tolist()
    found = {
        task.rows[candidates[at]][0].id: (float(means[at]), float(variances[at])) for at in order
    }
    best, _ = next(iter(found.values()))

    def spread(z: float, variance: float) -> float:
        """Half the width of an interval of one standard deviation, as scores."""
        low, high = (surrogate.scale.to_score(z + k * math.sqrt(variance)) for k in (-1, 1))
        return (high - low) / 2

    trials = {
        number: [surrogate.scale.to_score(z), spread(z, variance)]
        for number, (z, variance) in found.items()
    }
    return {ESTIMATES: {"noise_sd": spread(best, noise), "trials": trials}}


def told_first(suggestions: Sequence[Suggestion], info: dict[str, Any]) -> list[Suggestion]:
    """Suggestions, of which the first one also carries what concerns the decision as a whole."""
    return [
        replace(one, info=one.info | info) if at == 0 else one for at, one in enumerate(suggestions)
    ]


def noise_variance(surrogate: Surrogate, data: Data) -> float | None:
    """Variance of the noise on the model's scale; the mean over all rows if it differs by place."""
    if isinstance(surrogate, ExactGP):
        return float(surrogate.noise_variance())
    if isinstance(surrogate, IndependentGPs):
        each = [float(surrogate.model(subspace).noise_variance()) for subspace in data.subspaces]
        return sum(each) / len(each)
    return None


def _may_be_best(trial: Trial) -> bool:
    """A twin has the estimate of the trial whose training it shares."""
    return trial.value is not None and trial.is_comparable and trial.twin is None
