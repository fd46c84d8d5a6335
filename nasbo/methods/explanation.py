"""Explanations of a method's model and of its predictions for single trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from nasbo.history import Trial
from nasbo.space import Coordinate, Value

MAX_MAPS = 4
"""Maximum number of attention maps."""


@dataclass(frozen=True)
class AttentionMap:
    """Attention between tokens or units.

    Attributes:
        title: what the tokens or units belong to.
        labels: their names, ``kernel_size[2]``.
        weights: row i is what i attends to, (n, n); rows add up to 1.
        kind: ``units``, or tokens of a ``trained encoder``.
        trial: the trial whose config is shown; ``None`` for a map of units, which concerns all
            configs.
    """

    title: str
    labels: tuple[str, ...]
    weights: list[list[float]]
    kind: Literal["units", "trained encoder"]
    trial: Trial | None = None


@dataclass(frozen=True)
class Slice:
    """A model's posterior along one parameter, all others as in the config of a trial.

    Attributes:
        coordinate: the parameter.
        trial: the best one that has it.
        values: of the parameter, in the order of its range.
        predictions: median of the noise-free value at each, and the ends of its interval of one
            standard deviation, the smaller one first.
    """

    coordinate: Coordinate
    trial: Trial
    values: tuple[Value, ...]
    predictions: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True)
class Explanation:
    """What a method's model has learned from a history.

    Attributes:
        reason: why there is no attention map; empty where there is one.
        maps: those of the largest types of units, or of the best subspaces, first.
        noise_sd: standard deviation of the noise, in units of the metric; ``None`` where the model
            has no noise of its own.
        lengthscales: by parameter, in the unit cube, where two different choices are at distance 1:
            the score changes fast along short ones.
        slices: one per parameter, those of the best config first.
        n_results: how many results the model was fitted on.
    """

    reason: str = ""
    maps: Sequence[AttentionMap] = ()
    noise_sd: float | None = None
    lengthscales: Mapping[str, float] = field(default_factory=dict)
    slices: Sequence[Slice] = ()
    n_results: int = 0


@dataclass(frozen=True)
class Neighbour:
    """A known config near that of a trial, by the model's prior correlation.

    Attributes:
        trial: whose config it is.
        correlation: of the scores of both configs under the model's prior, at most 1.
        differences: value of the trial and value of the neighbour, by parameter, where they
            differ; ``None`` where a config does not have the parameter.
    """

    trial: Trial
    correlation: float
    differences: Mapping[str, tuple[Value, Value]]


@dataclass(frozen=True)
class Effect:
    """Effect of one parameter's value on the prediction of a trial.

    The prediction is compared with that of the same config with this parameter at its typical
    value: the most frequent choice, or the (lower) median of a number, among the other results that
    have the parameter. For a structural parameter, parameters that exist under both values keep
    their values, and the others get their typical ones. Effects are taken one at a time, so they
    need not add up.

    Attributes:
        parameter: its label, ``kernel_size[2]``.
        value: that of the trial.
        typical: the value that it is compared with.
        gain: improvement of the prediction by the trial's value, in units of the metric: positive
            if the value makes the prediction better.
    """

    parameter: str
    value: Value
    typical: Value
    gain: float


@dataclass(frozen=True)
class Why:
    """What a method's model predicts for one trial, from the results of the others.

    The trial's own result is left out, so that it can be compared with the prediction. For an open
    trial the prediction is the current posterior. What the method predicted when it suggested the
    trial is in ``trial.info``.

    Attributes:
        trial: the explained trial.
        reason: why there is no explanation; empty if there is one.
        n_results: number of results that the model was fitted on.
        prediction: median of the noise-free value and the ends of its interval of one standard
            deviation, the smaller one first.
        improvement: expected improvement on the best posterior mean of the other results, in units
            of the metric.
        noise_sd: standard deviation of the noise, in units of the metric; ``None`` if the model has
            no noise variance.
        nearest: known configs of the largest correlation, nearest first; empty if none is near, or
            the model has no covariance.
        effects: of the parameters that are not at their typical value, the largest first.
    """

    trial: Trial
    reason: str = ""
    n_results: int = 0
    prediction: tuple[float, float, float] | None = None
    improvement: float | None = None
    noise_sd: float | None = None
    nearest: Sequence[Neighbour] = ()
    effects: Sequence[Effect] = ()


def thin(rows: Sequence[tuple[Trial, float]], n: int) -> list[tuple[Trial, float]]:
    """At most ``n`` rows, in the order of the trial numbers: the best
    ones, and the rest thinned.
    """
    if len(rows) <= n:
        return list(rows)
    ordered = sorted(rows, key=lambda row: (-row[1], row[0].id))
    best, rest = ordered[: n // 2], ordered[n // 2 :]
    n_rest = n - len(best)
    chosen = [rest[place * len(rest) // n_rest] for place in range(n_rest)]
    return sorted(best + chosen, key=lambda row: row[0].id)
