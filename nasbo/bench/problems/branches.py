"""Synthetic problems of five branches with the same four names: `share` and `noshare`.

`share`: the responses are one common surface plus 35 % of a surface per branch. `noshare`: the
names agree, but the surfaces are independent. Surfaces are samples of a Matérn-5/2 process (random
Fourier features, lengthscale 0.7) plus a quadratic bowl.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nasbo.bench.problem import Config, Problem
from nasbo.bench.problems.entry import Entry, Half
from nasbo.bench.problems.parameters import choice, real
from nasbo.space import Space, load_space

Array = NDArray[np.float64]

SEED = 1000
NAMES = ("a", "b", "c", "d")
BRANCHES = ("first", "second", "third", "fourth", "fifth")
OWN_SHARE = 0.35
LENGTHSCALE = 0.7
N_FEATURES = 200
SHARE_OPTIMUM = -0.822108562
NOSHARE_OPTIMUM = -1.993945831
"""The best values of many L-BFGS runs in every branch, rounded down."""


@dataclass(frozen=True)
class Surface:
    """A sample of a Matérn-5/2 process: frequencies (m, d), phases (m,) and weights (m,)."""

    frequencies: Array
    phases: Array
    weights: Array

    def __call__(self, z: Array) -> float:
        """The value at z, shape (d,)."""
        return float(np.cos(self.frequencies @ z + self.phases) @ self.weights)


def draw_surface(rng: np.random.Generator, n_dimensions: int) -> Surface:
    """A random surface over [0, 1]^d; frequencies are Student-t with 5 degrees of freedom."""
    normal = rng.standard_normal((N_FEATURES, n_dimensions)) / LENGTHSCALE
    frequencies = normal * np.sqrt(5 / rng.chisquare(5, size=(N_FEATURES, 1)))
    phases = rng.uniform(0, 2 * np.pi, N_FEATURES)
    return Surface(frequencies, phases, rng.standard_normal(N_FEATURES) * np.sqrt(2 / N_FEATURES))


@dataclass(frozen=True)
class Responses:
    """Random parts of the responses: the common surface and bowl, and each
    branch's own and offset.
    """

    common: Surface
    centre: Array
    own: list[Surface]
    own_centres: Array
    offsets: Array

    def shared(self, branch: int, z: Array) -> float:
        """The common surface plus a share of the branch's own."""
        bowl = 2 * float(((z - self.centre) ** 2).sum())
        own = self.offsets[branch] + OWN_SHARE * self.own[branch](z)
        return float(own + self.common(z) + bowl)

    def unshared(self, branch: int, z: Array) -> float:
        """The branch's own surface and bowl alone."""
        bowl = 2 * float(((z - self.own_centres[branch]) ** 2).sum())
        return float(self.offsets[branch] + self.own[branch](z) + bowl)


def draw_responses() -> Responses:
    """The only instance, used by both problems."""
    rng, n = np.random.default_rng(SEED), len(NAMES)
    common, centre = draw_surface(rng, n), rng.uniform(0.2, 0.8, n)
    own = [draw_surface(rng, n) for _ in BRANCHES]
    own_centres = rng.uniform(0.2, 0.8, (len(BRANCHES), n))
    return Responses(common, centre, own, own_centres, 0.5 * rng.standard_normal(len(BRANCHES)))


def branch_space() -> Space:
    """One choice, and the same four floats under each of its values."""
    unit = {name: real(0, 1) for name in NAMES}
    return load_space({"algorithm": choice(*BRANCHES, branches=dict.fromkeys(BRANCHES, unit))})


def _problem(name: str, response: Callable[[int, Array], float], optimum: float) -> Problem:
    def evaluate(config: Config, rng: np.random.Generator) -> float:
        z = np.array([config[axis] for axis in NAMES], dtype=np.float64)
        return float(response(BRANCHES.index(config["algorithm"]), z))

    return Problem(name, branch_space(), evaluate, optimum=optimum)


def share() -> Problem:
    """Problem whose branches agree except for a share of their own."""
    return _problem("share", draw_responses().shared, optimum=SHARE_OPTIMUM)


def noshare() -> Problem:
    """Problem whose branches have only the names in common."""
    return _problem("noshare", draw_responses().unshared, optimum=NOSHARE_OPTIMUM)


def _entry(make: Callable[[], Problem], half: Half, summary: str) -> Entry:
    return Entry(make, "synthetic", half, summary)


ENTRIES: dict[str, Entry] = {
    "share": _entry(share, "tuning", "5 branches whose responses agree by name"),
    "noshare": _entry(noshare, "held-out", "5 branches whose responses differ though names agree"),
}
