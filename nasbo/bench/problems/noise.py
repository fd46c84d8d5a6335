"""Noise of problems: a function of the problem, the seed of the cell and the query's number."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from nasbo.bench.problem import Config

Evaluate = Callable[[Config, np.random.Generator], float]


def own_stream(problem: str, rng: np.random.Generator) -> np.random.Generator:
    """A generator for one query of one problem.

    The generator of a query follows from the seed and from the query's number alone; without the
    problem's name, two problems would be measured with the same noise.
    """
    return np.random.default_rng([zlib.crc32(problem.encode()), int(rng.integers(2**63))])


def with_noise(problem: str, truth: Callable[[Config], float], deviation: float) -> Evaluate:
    """The truth plus normal noise of a standard deviation."""

    def evaluate(config: Config, rng: np.random.Generator) -> float:
        return truth(config) + deviation * float(own_stream(problem, rng).standard_normal())

    return evaluate
