"""Parameter importance: shares of the explained variance of the scores, with intervals.

The model is additive in the ranks of the scores. Every parameter has one effect per level (numbers
with many values are binned by quantiles); an inactive parameter has effect 0. The model is fitted
by componentwise boosting (Bühlmann and Yu 2003): each step moves the effects of the one parameter
that explains most of the residuals, after subtracting what its number of levels would explain of
noise. The number of steps is chosen by cross-validation. A parameter's importance is the variance
of its effects over the trials, as a share of the total over all parameters. So a few important
parameters can be found among many, from few trials. Ranks make it robust against very bad configs.
Interactions are not modelled.

Shares add up to 1 whatever the data, so two checks measure their reliability. A permutation test
compares the prediction of left-out results with that after a shuffle of the results. A bootstrap
over trials gives a confidence interval for each share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from nasbo.history import Trial, View
from nasbo.sweeps.rungs import seen_at

Array = NDArray[np.float64]

MAX_BINS = 5
MAX_LEVELS = 8
MAX_TRIALS = 4_000
MIN_SEEN = 20
"""Least number of trials that have reached a rung for its values to be used."""
N_FOLDS = 5
MAX_STEPS = 60
MIN_STEPS = 5
"""Minimum number of boosting steps, even if validation prefers fewer."""
RATE = 0.3
N_RESAMPLES = 200
N_SHUFFLES = 199
CONFIDENCE = 0.95
MIN_LOW = 0.05
"""Least lower bound of the largest share."""
MAX_WIDTH = 0.5
"""Largest width of the largest share's interval if there are fewer results
than twice the parameters."""


@dataclass(frozen=True)
class Importance:
    """Importance of parameters in an additive model.

    Attributes:
        shares: share of the explained variance by coordinate label (``kernel_size[2]``), adding up
            to 1; the largest first.
        intervals: ends of the interval of each share by parameter name, the entries of a list
            together, at a confidence of 95 %.
        explained: part of the variance of the ranks that the model predicts for left-out trials;
            at most 1, and not above 0 where it has learned nothing.
        n_trials: how many trials it was fitted on.
        leads: part of the resamples in which each parameter's share is the largest, by name.
        doubt: why the shares mean nothing; empty where they do.
    """

    shares: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    explained: float
    n_trials: int
    leads: dict[str, float] = field(default_factory=dict)
    doubt: str = ""

    def by_name(self) -> dict[str, float]:
        """Shares by parameter name, with the elements of a list combined, largest first."""
        totals: dict[str, float] = {}
        for label, share in self.shares.items():
            name = name_of(label)
            totals[name] = totals.get(name, 0.0) + share
        return dict(sorted(totals.items(), key=lambda item: -item[1]))


def name_of(label: str) -> str:
    """The parameter name of a coordinate label."""
    return label.partition("[")[0]


def measure_importance(history: View) -> Importance | None:
    """Importance of all parameters; ``None`` if there are too few or only equal scores."""
    rows = _compared_rows(history)[-MAX_TRIALS:]
    if len(rows) < 8 or len({score for _, score in rows}) < 3:
        return None
    y = _ranks(np.array([score for _, score in rows]))
    columns, owners, labels = _columns(history, [trial for trial, _ in rows])
    if not columns:
        return None
    levels = Levels(np.stack(columns, axis=1), np.array(owners))
    rng = np.random.default_rng(0)
    shuffled = rng.permuted(np.tile(y, (N_SHUFFLES, 1)), axis=1).T
    n_steps, explained = _validate(levels, np.column_stack([y, shuffled]))
    draws = rng.multinomial(len(y), np.full(len(y), 1 / len(y)), N_RESAMPLES).T
    weights = np.column_stack([np.ones(len(y)), draws])
    shares = _shares(levels, y, weights, max(int(n_steps[0]), MIN_STEPS))
    order = sorted(range(len(labels)), key=lambda at: (-shares[at, 0], at))
    found = Importance(
        {labels[at]: float(shares[at, 0]) for at in order},
        _intervals(labels, shares),
        float(explained[0]),
        len(rows),
        _leads(labels, shares[:, 1:]),
    )
    p_value = float(np.mean(explained >= explained[0]))
    return replace(found, doubt=_doubt(found, p_value))


def compared_step(history: View) -> int | None:
    """The rung whose values are compared: the highest with enough trials, else the first.

    ``None`` without rungs: all values are those of full trainings.
    """
    if history.rungs is None:
        return None
    enough = (s for s in reversed(history.rungs.steps) if len(seen_at(history, s)) >= MIN_SEEN)
    return next(enough, history.rungs.steps[0])


def _compared_rows(history: View) -> list[tuple[Trial, float]]:
    """Trials and their scores at the same step, in the order of the trial numbers."""
    step = compared_step(history)
    if step is None:
        return history.rows()
    known = {one.trial.id: (one.trial, one.score) for one in seen_at(history, step)}
    worst = min((score for _, score in known.values() if np.isfinite(score)), default=0.0)
    rows = (known[number] for number in sorted(known))
    return [(trial, score if np.isfinite(score) else worst) for trial, score in rows]


def _intervals(labels: Sequence[str], shares: Array) -> dict[str, tuple[float, float]]:
    """Confidence intervals by parameter name, which include the share itself.

    Args:
        labels: of the n coordinates.
        shares: of all trials and of each resample, shape (n, 1 + n_resamples).
    """
    tails = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
    found: dict[str, tuple[float, float]] = {}
    for name, (whole, *resampled) in _by_name(labels, shares).items():
        low, high = np.quantile(resampled, tails)
        found[name] = float(min(low, whole)), float(max(high, whole))
    return found


def _leads(labels: Sequence[str], resampled: Array) -> dict[str, float]:
    """How often each parameter has the largest share, the shares of shape (n, n_resamples)."""
    totals = _by_name(labels, resampled)
    first = np.stack([*totals.values()]).argmax(axis=0)
    return {name: float(np.mean(first == at)) for at, name in enumerate(totals)}


def _by_name(labels: Sequence[str], shares: Array) -> dict[str, Array]:
    """Shares of coordinates, shape (n, m), summed up by parameter, shape (m,) each."""
    names = np.array([name_of(label) for label in labels])
    return {name: shares[names == name].sum(axis=0) for name in dict.fromkeys(names.tolist())}


def _doubt(found: Importance, p_value: float) -> str:
    """Why the shares are unreliable; empty if they are reliable."""
    n_parameters = len(found.shares)
    have = f"{found.n_trials:,} results in {n_parameters:,} parameters cannot tell which matter"
    if found.explained <= 0:
        return f"{have}: the model explains nothing of left-out results"
    if p_value > 1 - CONFIDENCE:
        return f"{have}: shuffled results are explained as well as these"
    low, high = found.intervals[next(iter(found.by_name()))]
    is_wide = found.n_trials < 2 * n_parameters and high - low > MAX_WIDTH
    if low < MIN_LOW or is_wide:
        return f"{have}: the largest share may be anything from {low:.0%} to {high:.0%}"
    return ""


def _ranks(scores: Array) -> Array:
    """Ranks in [0, 1]; equal scores get their mean rank."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means = (ends - counts + ends - 1) / 2
    ranks: Array = means[inverse] / max(len(scores) - 1, 1)
    return ranks


def _columns(history: View, trials: Sequence[Trial]) -> tuple[list[Array], list[int], list[str]]:
    """Indicator columns, the index of each one's coordinate, and the coordinates' labels."""
    units = unit_values(history, trials)
    columns: list[Array] = []
    owners: list[int] = []
    labels: list[str] = []
    for label, values in units.items():
        found = _indicators(values)
        if len(found) >= 2 or (found and np.isnan(values).any()):
            owners += [len(labels)] * len(found)
            columns += found
            labels.append(label)
    return columns, owners, labels


def unit_values(history: View, trials: Sequence[Trial]) -> dict[str, Array]:
    """Parameter values by coordinate label, scaled to [0, 1], NaN where inactive.

    Args:
        history: of the trials.
        trials: n of them.

    Returns:
        Arrays of shape (n,), in the order of the coordinates' first occurrence.
    """
    found: dict[str, Array] = {}
    for row, trial in enumerate(trials):
        for coordinate in history.subspace(trial).coordinates:
            if coordinate.label not in found:
                found[coordinate.label] = np.full(len(trials), np.nan)
            found[coordinate.label][row] = coordinate.parameter.to_unit(
                coordinate.value_in(trial.config)
            )
    return found


def _indicators(values: Array) -> list[Array]:
    known = values[~np.isnan(values)]
    levels = np.unique(known)
    if len(levels) <= MAX_LEVELS:
        return [(values == level).astype(np.float64) for level in levels]
    edges = np.unique(np.quantile(known, np.linspace(0, 1, MAX_BINS + 1)))[1:-1]
    bins = np.digitize(values, edges)
    is_known = ~np.isnan(values)
    return [((bins == index) & is_known).astype(np.float64) for index in range(len(edges) + 1)]


@dataclass(frozen=True)
class Levels:
    """Configs as levels of parameters.

    Attributes:
        indicators: 1 if a config has a level, shape (n_trials, n_levels).
        owners: index of the parameter of each level, shape (n_levels,).
    """

    indicators: Array
    owners: NDArray[np.intp]

    def take(self, rows: NDArray[np.bool_]) -> Levels:
        return Levels(self.indicators[rows], self.owners)


def _boost(levels: Levels, y: Array, weights: Array, n_steps: int) -> Iterator[Array]:
    """Change of the effects of all levels by each boosting step, for several problems at once.

    Args:
        levels: of n trials.
        y: targets, shape (n, n_problems).
        weights: weights of the trials, shape (n, n_problems).
        n_steps: number of steps.

    Yields:
        Changes of effects, shape (n_levels, n_problems).
    """
    starts = np.flatnonzero(np.diff(levels.owners, prepend=-1))
    degrees = np.maximum(np.bincount(levels.owners) - 1, 1)[:, None]
    counts = np.maximum(levels.indicators.T @ weights, 1.0)
    totals = weights.sum(axis=0)
    left = y - (weights * y).sum(axis=0) / totals
    for _ in range(n_steps):
        sums = levels.indicators.T @ (weights * left)
        mean = (weights * left).sum(axis=0) / totals
        noise = (weights * left**2).sum(axis=0) / totals - mean**2
        gains = np.add.reduceat(sums**2 / counts, starts) - degrees * noise
        chosen = levels.owners[:, None] == gains.argmax(axis=0)
        step = np.where(chosen, RATE * sums / counts, 0.0)
        left = left - levels.indicators @ step
        yield step


def _shares(levels: Levels, y: Array, weights: Array, n_steps: int) -> Array:
    """Shares of the explained variance, shape (n_parameters, n_problems).

    A config has at most one level of a parameter, so the variance of its effects follows from the
    frequency of each level.
    """
    targets = np.broadcast_to(y[:, None], weights.shape)
    effects = sum(_boost(levels, targets, weights, n_steps), np.zeros((1, 1)))
    often = levels.indicators.T @ weights / weights.sum(axis=0)
    starts = np.flatnonzero(np.diff(levels.owners, prepend=-1))
    means = np.add.reduceat(often * effects, starts)
    spread = np.maximum(np.add.reduceat(often * effects**2, starts) - means**2, 0.0)
    totals = spread.sum(axis=0)
    shares: Array = spread / np.where(totals > 0, totals, 1.0)
    return shares


def _validate(levels: Levels, y: Array) -> tuple[NDArray[np.intp], Array]:
    """Cross-validation of several problems at once.

    Args:
        levels: of n trials.
        y: targets, shape (n, n_problems).

    Returns:
        The best numbers of steps, and the shares of the variance of left-out trials that they
            explain; both of shape (n_problems,).
    """
    fold = np.arange(len(y)) % N_FOLDS
    errors = np.zeros((MAX_STEPS + 1, y.shape[1]))
    for number in range(N_FOLDS):
        seen, out = fold != number, fold == number
        left = y[out] - y[seen].mean(axis=0)
        errors[0] += (left**2).sum(axis=0)
        steps = _boost(levels.take(seen), y[seen], np.ones(y[seen].shape), MAX_STEPS)
        for at, step in enumerate(steps, start=1):
            left = left - levels.indicators[out] @ step
            errors[at] += (left**2).sum(axis=0)
    return errors.argmin(axis=0), 1.0 - errors.min(axis=0) / errors[0]
