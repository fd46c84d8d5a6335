"""Explanation of one trial by a surrogate that is fitted to the other trials."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from scipy.integrate import trapezoid

from nasbo.gp.transform import Scale
from nasbo.history import Trial, View
from nasbo.history.data import Data
from nasbo.methods.explanation import Effect, Neighbour, Why
from nasbo.methods.typical import Seen
from nasbo.space import Config, Coordinate, Value
from nasbo.surrogates.base import ExactGP, Surrogate, as_batches, batches_of

N_NEAREST = 5
MIN_CORRELATION = 0.01
"""Least prior correlation of a config that counts as near."""
N_STEPS = 2_001
TAIL = 8.0
"""Limit of integration of the expectation, in standard deviations."""


def explain_trial(surrogate: Surrogate, history: View, trial: Trial, others: list[Trial]) -> Why:
    """What a surrogate predicts for a trial.

    Args:
        surrogate: fitted to the others.
        history: of all trials.
        trial: the trial to explain.
        others: the trials with results, without the explained one.
    """
    changes = _typical_changes(history, trial, others)
    configs = [trial.config, *(config for _, _, config in changes)]
    subspaces = [history.space.subspace_of(config) for config in configs]
    x = [one.encode(config) for one, config in zip(subspaces, configs, strict=True)]
    with torch.no_grad():
        means, variances = surrogate.posteriors(as_batches(subspaces, x))
    mean, sd, to_score = float(means[0]), float(variances[0]) ** 0.5, surrogate.scale.to_score
    value, *ends = (history.score(to_score(mean + k * sd)) for k in (0, -1, 1))
    gains = [to_score(mean) - to_score(float(other)) for other in means[1:]]
    effects = [
        Effect(one.label, one.value_in(trial.config), typical, gain)
        for (one, typical, _), gain in zip(changes, gains, strict=True)
    ]
    incumbent = float(surrogate.observed_means().max())
    return Why(
        trial,
        n_results=len(others),
        prediction=(value, min(ends), max(ends)),
        improvement=expected_improvement(surrogate.scale, mean, sd, incumbent),
        noise_sd=noise_sd(surrogate),
        nearest=_nearest(surrogate, history, trial, others),
        effects=sorted(effects, key=lambda one: -abs(one.gain)),
    )


def expected_improvement(scale: Scale, mean: float, sd: float, incumbent: float) -> float:
    """E[max(g(z) - g(incumbent), 0)] for z ~ N(mean, sd^2), where g maps back to scores.

    On the model's own scale this is EI. g may be the inverse of a logarithm, so the expectation is
    integrated by the trapezoid rule above the incumbent.
    """
    start = max((incumbent - mean) / sd, -TAIL)
    t = np.linspace(start, max(start, 0.0) + TAIL, N_STEPS)
    best = scale.to_score(incumbent)
    gains = np.array([scale.to_score(mean + sd * one) - best for one in t.tolist()])
    density = np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)
    return float(trapezoid(np.maximum(gains, 0.0) * density, t))


def noise_sd(surrogate: Surrogate) -> float | None:
    """Standard deviation of the noise in scores, at the mean score; ``None``
    without a noise variance.
    """
    if not isinstance(surrogate, ExactGP):
        return None
    sd = float(surrogate.noise_variance()) ** 0.5
    return (surrogate.scale.to_score(sd) - surrogate.scale.to_score(-sd)) / 2


def _nearest(
    surrogate: Surrogate, history: View, trial: Trial, others: Sequence[Trial]
) -> list[Neighbour]:
    known = Data.of_trials(history.space, [(other, 0.0) for other in others])
    subspace = history.subspace(trial)
    x = torch.from_numpy(subspace.encode(trial.config)[None])
    with torch.no_grad():
        found = surrogate.correlations(subspace, x, batches_of(known))
    if found is None:
        return []
    near = sorted(zip(found.tolist(), others, strict=True), key=lambda one: (-one[0], one[1].id))
    return [
        Neighbour(other, correlation, _differences(history, trial, other))
        for correlation, other in near[:N_NEAREST]
        if correlation >= MIN_CORRELATION
    ]


def _differences(history: View, trial: Trial, other: Trial) -> dict[str, tuple[Value, Value]]:
    here, there = (
        {
            coordinate.label: coordinate.value_in(one.config)
            for coordinate in history.subspace(one).coordinates
        }
        for one in (trial, other)
    )
    return {
        label: (here.get(label), there.get(label))
        for label in here | there
        if label not in here or label not in there or here[label] != there[label]
    }


def _typical_changes(
    history: View, trial: Trial, others: list[Trial]
) -> list[tuple[Coordinate, Value, Config]]:
    """Each parameter that is not at its typical value, that value, and the config with it."""
    seen = Seen.of_trials(history, others)
    typical = [(one, seen.typical(one)) for one in history.subspace(trial).coordinates]
    return [
        (one, value, seen.changed(trial, one, value))
        for one, value in typical
        if value != one.value_in(trial.config)
    ]
