"""Reproducible noise of problems, by problem, seed of the cell, and number of the query."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np

from nasbo.bench.problem import Config, Problem


def own_stream(problem: str, rng: np.random.Generator) -> np.random.Generator:
    """Generator for one query of one problem.

    A query's generator depends on the seed and the query's number alone. Without the problem's
    name, two problems would get the same noise.
    """
    return np.random.default_rng([zlib.crc32(problem.encode()), int(rng.integers(2**63))])


def with_noise(problem: Problem, name: str, deviation: float) -> Problem:
    """A problem under another name: its truth plus normal noise, scored by returned configs.

    Args:
        problem: provides the truth, or its values if it is noise-free.
        name: name of the noisy problem.
        deviation: standard deviation of the noise.
    """

    def truth(config: Config) -> float:
        # A problem without `truth` is noise-free: its value depends on no generator.
        known = problem.truth
        return known(config) if known else problem.evaluate(config, np.random.default_rng(0))

    def evaluate(config: Config, rng: np.random.Generator) -> float:
        return truth(config) + deviation * float(own_stream(name, rng).standard_normal())

    return replace(problem, name=name, evaluate=evaluate, truth=truth, is_returned=True)


def with_own_stream(problem: Problem, name: str) -> Problem:
    """A problem that is itself noisy, under another name and scored by returned configs."""

    def evaluate(config: Config, rng: np.random.Generator) -> float:
        return problem.evaluate(config, own_stream(name, rng))

    return replace(problem, name=name, evaluate=evaluate, is_returned=True)
