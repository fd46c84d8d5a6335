"""Problems with learning curves: construction, noise, and misleading early values."""

from __future__ import annotations

import zlib
from dataclasses import replace
from functools import lru_cache

import numpy as np

from nasbo.bench.problem import Config, Curve, Problem, Snap
from nasbo.bench.problems.noise import own_stream
from nasbo.errors import NasboError
from nasbo.history import config_key
from nasbo.space import Space

GROUPS = {"": "curves", "_noisy": "curves_noisy", "_lying": "curves_lying"}
"""Groups by the suffix of a problem's name: plain, noisy, or with misleading early values."""
NOISE_SHARE = 0.5
"""Noise sd, as a share of the standard deviation of the better half of random configs."""
FIXED_SHARE = 0.5
"""Share of the noise variance that is the same at all steps of a config."""


def curve_problem(
    name: str, space: Space, curve: Curve, snap: Snap | None = None, version: int = 1
) -> Problem:
    """A noise-free problem whose value is the end of its curve."""

    def evaluate(config: Config, rng: np.random.Generator) -> float:
        return curve.at(config, curve.n_steps, rng)

    return Problem(name, space, evaluate, version=version, curve=curve, snap=snap)


def noise_deviation(curve: Curve) -> float:
    """Standard deviation of the noise of a noisy curve."""
    finals = np.sort(np.asarray(curve.finals()))
    return NOISE_SHARE * float(finals[: (len(finals) + 1) // 2].std())


def with_curve_noise(problem: Problem, name: str) -> Problem:
    """A problem under another name with noisy curves, scored by returned configs.

    Half of the noise variance is fixed per config, like that of one split of the data. The other
    half is drawn at each step.
    """
    curve = _curve_of(problem)

    @lru_cache(maxsize=1)
    def deviation() -> float:
        return noise_deviation(curve)

    def at(config: Config, step: int, rng: np.random.Generator) -> float:
        drawn = float(own_stream(name, rng).standard_normal())
        fixed = float(_config_stream(name, config).standard_normal())
        noise = np.sqrt(FIXED_SHARE) * fixed + np.sqrt(1 - FIXED_SHARE) * drawn
        return curve.at(config, step, rng) + deviation() * float(noise)

    return _changed(problem, name, replace(curve, at=at), is_noisy=True)


def with_lying_curve(problem: Problem, name: str) -> Problem:
    """A problem under another name whose values are uninformative before the end of a training.

    Before its last step, a config shows the curve of another config, chosen by a hash.
    """
    curve = _curve_of(problem)

    def at(config: Config, step: int, rng: np.random.Generator) -> float:
        shown = config if step >= curve.n_steps else _other_config(problem, name, config)
        return curve.at(shown, step, rng)

    return _changed(problem, name, replace(curve, at=at), is_noisy=False)


def _changed(problem: Problem, name: str, curve: Curve, is_noisy: bool) -> Problem:
    plain = curve_problem(name, problem.space, curve, problem.snap, problem.version)
    truth = problem.true_value if is_noisy else problem.truth
    return replace(plain, truth=truth, is_returned=truth is not None)


def _other_config(problem: Problem, name: str, config: Config) -> Config:
    other = problem.space.sample(_config_stream(name, config))
    if problem.snap is None:
        return other
    member = problem.snap(other, ())
    return config if member is None else member


def _config_stream(name: str, config: Config) -> np.random.Generator:
    """Generator for one config of one problem."""
    return np.random.default_rng([zlib.crc32(text.encode()) for text in (name, config_key(config))])


def _curve_of(problem: Problem) -> Curve:
    if problem.curve is None:
        raise NasboError(f"{problem.name} has no learning curves")
    return problem.curve
