"""A history comes in; how much of the scores' variance each parameter explains goes out.

An additive model of the ranks of the scores: every parameter has one effect per level (numbers
with many values are cut into bins of equal counts), a parameter that a config does not have has
the effect 0. The model is grown by componentwise boosting (Bühlmann and Yu 2003): step by step,
the one parameter that explains most of what is left, beyond what its number of levels would
explain of noise, moves a part of the way. The number of steps comes from cross-validation, which
also says how far the model can be trusted. The importance of a parameter is the variance of its
effects over the trials, as a share of that of all parameters. So few parameters can be found among
many, with few trials; ranks keep terrible configs from ruling the picture; interactions are not
seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nasbo.history import History, Trial
from nasbo.space import Slot

Array = NDArray[np.float64]

MAX_BINS = 5
MAX_LEVELS = 8
MAX_TRIALS = 4_000
N_FOLDS = 5
MAX_STEPS = 60
MIN_STEPS = 5
"""So many are taken even where validation wants fewer; ``explained`` says what to think of it."""
RATE = 0.3


@dataclass(frozen=True)
class Importance:
    """What an additive model says about parameters.

    Attributes:
        shares: share of the explained variance by slot label (``kernel_size[2]``), adding up to 1;
            the largest first.
        explained: part of the variance of the ranks that the model predicts for left-out trials;
            at most 1, and not above 0 where it has learned nothing.
        n_trials: how many trials it was fitted on.
    """

    shares: dict[str, float]
    explained: float
    n_trials: int

    def by_name(self) -> dict[str, float]:
        """Shares by parameter name: the entries of a list together, the largest first."""
        totals: dict[str, float] = {}
        for label, share in self.shares.items():
            name = label.partition("[")[0]
            totals[name] = totals.get(name, 0.0) + share
        return dict(sorted(totals.items(), key=lambda item: -item[1]))


def measure_importance(history: History) -> Importance | None:
    """The importance of all parameters; ``None`` where scores are too few or all the same."""
    rows = history.rows()[-MAX_TRIALS:]
    if len(rows) < 8 or len({score for _, score in rows}) < 3:
        return None
    trials = [trial for trial, _ in rows]
    y = _ranks(np.array([score for _, score in rows]))
    columns, owners, labels = _columns(history, trials)
    if not columns:
        return None
    levels = Levels(np.stack(columns, axis=1), np.array(owners))
    n_steps, explained = _validate(levels, y)
    effects = _boost(levels, y, max(n_steps, MIN_STEPS))[-1]
    parts = levels.indicators * effects
    spread = [float(parts[:, levels.owners == at].sum(1).var()) for at in range(len(labels))]
    total = sum(spread) or 1.0
    order = sorted(range(len(labels)), key=lambda at: (-spread[at], at))
    return Importance({labels[at]: spread[at] / total for at in order}, explained, len(rows))


def _ranks(scores: Array) -> Array:
    """Ranks in [0, 1]; equal scores share their mean rank."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means = (ends - counts + ends - 1) / 2
    ranks: Array = means[inverse] / max(len(scores) - 1, 1)
    return ranks


def _columns(history: History, trials: Sequence[Trial]) -> tuple[list[Array], list[int], list[str]]:
    """Indicator columns, the number of the slot that each belongs to, and the slots' labels."""
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


def unit_values(history: History, trials: Sequence[Trial]) -> dict[str, Array]:
    """Each parameter's place in its range by slot label, in [0, 1], NaN where it is absent.

    Args:
        history: of the trials.
        trials: n of them.

    Returns:
        Arrays of shape (n,), in the order in which the slots come up.
    """
    found: dict[str, Array] = {}
    for row, trial in enumerate(trials):
        for slot in history.subspace(trial).slots:
            if slot.label not in found:
                found[slot.label] = np.full(len(trials), np.nan)
            found[slot.label][row] = slot.parameter.to_unit(entry(slot, trial))
    return found


def entry(slot: Slot, trial: Trial) -> str | int | float | bool | None:
    """A slot's value in a trial's config."""
    value = trial.config[slot.name]
    found: str | int | float | bool | None = value[slot.index - 1] if slot.index else value
    return found


def _indicators(values: Array) -> list[Array]:
    known = values[~np.isnan(values)]
    levels = np.unique(known)
    if len(levels) <= MAX_LEVELS:
        return [(values == level).astype(np.float64) for level in levels]
    edges = np.unique(np.quantile(known, np.linspace(0, 1, MAX_BINS + 1)))[1:-1]
    bins = np.digitize(values, edges)
    is_known = ~np.isnan(values)
    return [((bins == place) & is_known).astype(np.float64) for place in range(len(edges) + 1)]


@dataclass(frozen=True)
class Levels:
    """Configs as levels of parameters.

    Attributes:
        indicators: 1 where a config has a level, shape (n_trials, n_levels).
        owners: number of the parameter that each level belongs to, shape (n_levels,).
    """

    indicators: Array
    owners: NDArray[np.intp]

    def take(self, rows: NDArray[np.bool_]) -> Levels:
        return Levels(self.indicators[rows], self.owners)


def _boost(levels: Levels, y: Array, n_steps: int) -> list[Array]:
    """The effects of all levels after each step, the beginning included: (n_levels,) each."""
    counts = np.maximum(levels.indicators.sum(axis=0), 1.0)
    degrees = np.maximum(np.bincount(levels.owners) - 1, 1)
    effects = np.zeros(len(levels.owners))
    path, left = [effects], y - y.mean()
    for _ in range(n_steps):
        sums = levels.indicators.T @ left
        gains = np.bincount(levels.owners, sums**2 / counts) - degrees * left.var()
        chosen = levels.owners == int(gains.argmax())
        step = np.where(chosen, RATE * sums / counts, 0.0)
        left = left - levels.indicators @ step
        effects = effects + step
        path.append(effects)
    return path


def _validate(levels: Levels, y: Array) -> tuple[int, float]:
    """The best number of steps, and the part of the variance it explains of left-out trials."""
    fold = np.arange(len(y)) % N_FOLDS
    errors = np.zeros(MAX_STEPS + 1)
    for number in range(N_FOLDS):
        seen, out = fold != number, fold == number
        path = np.stack(_boost(levels.take(seen), y[seen], MAX_STEPS), axis=1)
        predicted = y[seen].mean() + levels.take(out).indicators @ path
        errors += ((y[out, None] - predicted) ** 2).sum(axis=0)
    best = int(errors.argmin())
    return best, 1.0 - float(errors[best] / errors[0])
