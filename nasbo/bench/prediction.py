"""Predictive accuracy and calibration of methods' surrogates.

Small errors are not enough for a search: an overconfident surrogate stops exploring too early. So
the whole predictive distribution is scored on held-out configs.

    nasbo bench predict --problem share --size 50
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr

from nasbo.bench.lookup import find_problem
from nasbo.bench.problem import Problem
from nasbo.bench.spec import parse_method
from nasbo.errors import NasboError
from nasbo.gp.transform import Scale
from nasbo.history.data import Data
from nasbo.methods import Method
from nasbo.methods.base import Task, design_size
from nasbo.methods.modelled import SurrogateMethod
from nasbo.space import Subspace
from nasbo.surrogates.base import FitError, Surrogate, batches_of

Array = NDArray[np.float64]

PROBLEMS = ("jenatton_large_shifted", "share", "noshare", "blocks", "tree_many")
METHODS = ("attnbo", "gp", "hierarchical", "addtree", "independent")
SIZES = (20, 50, 100)
N_SEEDS = 5
N_HELD_OUT = 200
FLOOR = 0.01
"""Added in quadrature to each predicted sd, in sds of the observed scores: differences this small
do not matter to a search."""
WORST = -10.0
"""Lower clip of the log density of one config: an error of about four and a half sds."""
LEVELS = np.linspace(0.05, 0.95, 19)


@dataclass(frozen=True)
class Quality:
    """Quality of the predictions of one surrogate, or the mean over several.

    Attributes:
        error: root mean squared error, in sds of the held-out scores.
        best_error: root mean squared error over the best quarter of the held-out configs.
        log_density: mean log density of the held-out scores, in sds, in nats; larger is better.
        calibration: mean absolute difference between a predicted quantile's level and the share of
            scores below it.
    """

    error: float
    best_error: float
    log_density: float
    calibration: float

    def __iter__(self) -> Iterator[float]:
        yield from (self.error, self.best_error, self.log_density, self.calibration)


@dataclass(frozen=True)
class Row:
    """Qualities of one method on one problem and number of observations, one per seed."""

    problem: str
    size: int
    method: str
    qualities: tuple[Quality, ...]

    @property
    def mean(self) -> Quality:
        return mean_quality(self.qualities)


def measure_predictions(
    methods: Sequence[str] = METHODS,
    problems: Sequence[str] = PROBLEMS,
    sizes: Sequence[int] = SIZES,
    n_seeds: int = N_SEEDS,
    progress: Callable[[str], None] = lambda line: None,
) -> list[Row]:
    """Fit every surrogate to the same random observations and score it on
    the same held-out configs.

    Configs are uniform over the subspaces, then inside. Observations have the problem's noise and
    held-out scores do not: predictions are of the noise-free score.

    Args:
        methods: such as ``attnbo[attention=off]``; all must have a surrogate.
        problems: their names.
        sizes: numbers of observations; a smaller set is the beginning of a larger one.
        n_seeds: number of sets of observations.
        progress: called with a line after each set.
    """
    if n_seeds < 1 or not sizes or min(sizes) < 2:
        raise NasboError(f"seeds >= 1 and sizes >= 2 must hold, but got {n_seeds} and {sizes}")
    specs = [parse_method(method) for method in methods]
    found: dict[tuple[str, int, str], list[Quality]] = {}
    for name in problems:
        problem = find_problem(name)
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            held_out = draw_rows(problem, N_HELD_OUT, rng, is_true=True)
            observed = draw_rows(problem, max(sizes), rng)
            for size in sizes:
                front = observed.take(range(size))
                for spec in specs:
                    model = _surrogate(spec.make(problem.space, seed), spec.label, seed)
                    quality = _fit_and_score(model, front, held_out, spec.label)
                    found.setdefault((name, size, spec.label), []).append(quality)
            progress(f"{name}: seed {seed + 1} of {n_seeds}")
    return [Row(*key, tuple(qualities)) for key, qualities in found.items()]


def draw_rows(problem: Problem, n: int, rng: Generator, is_true: bool = False) -> Data:
    """Random configs with their scores, larger is better; the first ones count as the design."""
    subspaces: list[Subspace] = [problem.space.random_subspace(rng) for _ in range(n)]
    x = [subspace.encode(subspace.sample_config(rng)) for subspace in subspaces]
    scores = []
    for subspace, row in zip(subspaces, x, strict=True):
        config = subspace.decode(row)
        value = problem.evaluate(config, rng)
        scores.append(-(problem.score(config, value) if is_true else value))
    n_design = min(n, design_size(problem.space))
    return Data(problem.space, subspaces, x, np.array(scores), n_design)


def score(surrogate: Surrogate, held_out: Data) -> Quality:
    """Quality of a fitted surrogate's predictions of noise-free held-out scores."""
    with torch.no_grad():
        mean, variance = (part.numpy() for part in surrogate.posteriors(batches_of(held_out)))
    sds = np.sqrt(np.maximum(variance, 0.0) + FLOOR**2)
    spread = max(float(held_out.scores.std()), 1e-12)
    predicted = np.array([surrogate.scale.to_score(float(z)) for z in mean])
    errors = (predicted - held_out.scores) / spread
    best = held_out.scores >= np.quantile(held_out.scores, 0.75)
    z, log_slope = on_scale(surrogate.scale, held_out.scores)
    away = (z - mean) / sds
    with np.errstate(invalid="ignore"):  # scores beyond the end of the scale
        densities = -0.5 * away**2 - np.log(sds) - 0.5 * math.log(2 * math.pi)
        densities = np.where(np.isfinite(away), densities + log_slope + math.log(spread), WORST)
    below = ndtr(away)
    parts = np.array([(below <= level).mean() for level in LEVELS])
    return Quality(
        error=_root_mean_square(errors),
        best_error=_root_mean_square(errors[best]),
        log_density=float(np.maximum(densities, WORST).mean()),
        calibration=float(np.abs(parts - LEVELS).mean()),
    )


def on_scale(scale: Scale, y: Array) -> tuple[Array, Array]:
    """Scores on a model's scale, shape (n,), and the log derivative at each.

    A score beyond the end of a logarithmic scale is infinite there.
    """
    if scale.shift is None:
        return (y - scale.mean) / scale.sd, np.full(len(y), -math.log(scale.sd))
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(scale.shift - y, 0.0))
    return (-logs - scale.mean) / scale.sd, -logs - math.log(scale.sd)


def mean_quality(qualities: Sequence[Quality]) -> Quality:
    """Mean of each number over several qualities."""
    return Quality(*(float(value) for value in np.mean([list(one) for one in qualities], axis=0)))


def table(rows: Sequence[Row]) -> list[str]:
    """Lines of text: methods by problem and size, then over all problems."""
    wide = max(len(row.method) for row in rows) + 2
    pad = max(len(row.problem) for row in rows) + 2
    head = f"{'problem':<{pad}}{'n':>6}  {'method':<{wide}}"
    lines = [head + f"{'error':>8}{'of best':>9}{'log density':>13}{'calibration':>13}"]
    lines += [_line(row.problem, row.size, row.method, row.mean, pad, wide) for row in rows]
    if len({row.problem for row in rows}) > 1:
        together: dict[tuple[int, str], list[Quality]] = {}
        for row in rows:
            together.setdefault((row.size, row.method), []).append(row.mean)
        lines += [
            _line("all", size, method, mean_quality(qualities), pad, wide)
            for (size, method), qualities in sorted(together.items(), key=lambda one: one[0][0])
        ]
    return lines


def _line(problem: str, size: int, method: str, quality: Quality, pad: int, wide: int) -> str:
    error, best, density, calibration = quality
    numbers = f"{error:>8.3f}{best:>9.3f}{density:>13.2f}{calibration:>13.3f}"
    return f"{problem:<{pad}}{size:>6}  {method:<{wide}}{numbers}"


def _surrogate(method: Method, label: str, seed: int) -> Surrogate:
    """The unfitted surrogate of a method."""
    if not isinstance(method, SurrogateMethod):
        raise NasboError(f"{label} has no surrogate whose predictions could be scored")
    return method.make_surrogate(Task.empty(method.space, seed))


def _fit_and_score(surrogate: Surrogate, observed: Data, held_out: Data, label: str) -> Quality:
    try:
        surrogate.fit(observed)
    except FitError as error:
        raise NasboError(f"{label} could not be fitted to {len(observed)} rows: {error}") from error
    return score(surrogate, held_out)


def _root_mean_square(errors: Array) -> float:
    return float(np.sqrt(np.mean(errors**2)))
