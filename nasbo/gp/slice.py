"""Slice sampler."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Array = NDArray[np.float64]

MAX_STEPS = 50


def slice_sample(
    log_density: Callable[[Array], float],
    start: Array,
    widths: Array,
    n: int,
    rng: Generator,
    thin: int = 1,
) -> Array:
    """Samples from an unnormalised density by slices along random directions (Neal 2003).

    Args:
        log_density: its logarithm; -inf where it vanishes.
        start: first point, of positive density, shape (d,).
        widths: scale of each coordinate, shape (d,).
        n: number of samples.
        rng: for all draws.
        thin: moves per sample.

    Returns:
        Shape (n, d).
    """
    x, height = np.array(start, dtype=np.float64), log_density(start)
    draws = []
    for _ in range(n):
        for _ in range(thin):
            direction = rng.standard_normal(len(x)) * widths
            x, height = _move(log_density, x, height, direction, rng)
        draws.append(x)
    return np.stack(draws)


def _move(
    log_density: Callable[[Array], float],
    x: Array,
    height: float,
    direction: Array,
    rng: Generator,
) -> tuple[Array, float]:
    """One move: draw a level below the density, step out an interval, shrink it until a hit."""
    level = height + np.log(rng.random())
    low = -float(rng.random())
    high = low + 1.0
    for _ in range(MAX_STEPS):
        if log_density(x + low * direction) <= level:
            break
        low -= 1.0
    for _ in range(MAX_STEPS):
        if log_density(x + high * direction) <= level:
            break
        high += 1.0
    for _ in range(4 * MAX_STEPS):
        step = low + (high - low) * float(rng.random())
        there = x + step * direction
        value = log_density(there)
        if value > level:
            return there, value
        low, high = (step, high) if step < 0 else (low, step)
    return x, height
