"""Pest control (Oh et al. 2019): one of four pesticides or none at each of 25 stations.

Each evaluation simulates the share of pests 100 times, which makes it noisy. A pesticide gets
cheaper and weaker the more often it is used. The value is the price paid plus the expected number
of stations with more than 10 % of pests.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nasbo.bench.problem import Config, Problem
from nasbo.bench.problems.entry import Entry
from nasbo.bench.problems.parameters import choice
from nasbo.space import load_space

N_STATIONS = 25
N_SIMULATIONS = 100
N_TRUE_SIMULATIONS = 4_000
TOO_MANY = 0.1
PRICE = (0.0, 1.0, 0.8, 0.7, 0.5)
DISCOUNT = (0.0, 0.2, 0.3, 0.3, 0.0)
TOLERANCE = (0.0, 1 / 7, 2.5 / 7, 2 / 7, 0.5 / 7)
WEAKNESS = (0.0, 2 / 7, 3 / 7, 3 / 7, 5 / 7)


def simulate(actions: Sequence[int], n_simulations: int, rng: np.random.Generator) -> float:
    """Price plus mean number of stations with too many pests, for 25 actions from 0 to 4."""
    weakness = list(WEAKNESS)
    pests = rng.beta(1.0, 30.0, n_simulations)
    total = 0.0
    for action in actions:
        total += float(np.mean(pests > TOO_MANY))
        spread = rng.beta(1.0, 17 / 3, n_simulations)
        if not action:
            pests = pests + spread * (1 - pests)
            continue
        pests = pests * (1 - rng.beta(1.0, weakness[action], n_simulations))
        weakness[action] += TOLERANCE[action] / N_STATIONS
        total += PRICE[action] * (1 - DISCOUNT[action] * actions.count(action) / N_STATIONS)
    return total


def _actions(config: Config) -> list[int]:
    return [config[f"x{i}"] for i in range(N_STATIONS)]


def evaluate(config: Config, rng: np.random.Generator) -> float:
    """The noisy value."""
    return simulate(_actions(config), N_SIMULATIONS, rng)


def truth(config: Config) -> float:
    """Mean over many simulations, with the same random numbers for all configs."""
    return simulate(_actions(config), N_TRUE_SIMULATIONS, np.random.default_rng(0))


def make() -> Problem:
    """The problem; its optimum is unknown."""
    space = load_space({f"x{i}": choice(*range(5)) for i in range(N_STATIONS)})
    return Problem("pest_control", space, evaluate, truth, version=2)


ENTRIES: dict[str, Entry] = {
    "pest_control": Entry(make, "mixed", "tuning", "25 choices of 5, noise of a simulation")
}
