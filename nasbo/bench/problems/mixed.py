"""Known functions of choices and numbers, without conditions (a single subspace each).

`func2c` and `func3c` (Ru et al. 2020, also used by CASMOPOLITAN) sum functions of two numbers that
choices select; values of a choice past the third all select Beale. `ackley53` has 50 binary and 3
continuous variables; `hartmann6` has numbers only. The noise of 1e-6 in the original code of the
first three is left out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nasbo.bench.problem import Config, Problem
from nasbo.bench.problems.entry import Entry, Half
from nasbo.bench.problems.parameters import Document, choice, real
from nasbo.space import load_space

CAMEL_OPTIMUM = -1.0316284534898774
HARTMANN_OPTIMUM = -3.3223680114155147
N_BINARY = 50


def rosenbrock(x: float, y: float) -> float:
    """Least value 0 at (1, 1)."""
    return (100 * (y - x**2) ** 2 + (x - 1) ** 2) / 300


def camel(x: float, y: float) -> float:
    """Six-hump camel; the least value is a tenth of `CAMEL_OPTIMUM` at ±(0.0898, -0.7126)."""
    return ((4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + 4 * (y**2 - 1) * y**2) / 10


def beale(x: float, y: float) -> float:
    """Least value 0 at (3, 0.5), outside of the box."""
    return sum((c - x + x * y**k) ** 2 for k, c in ((1, 1.5), (2, 2.25), (3, 2.625))) / 50


PICKED = (rosenbrock, camel, beale)


def func2c(config: Config) -> float:
    """Sum of the two selected functions."""
    x, y = 2 * config["x1"], 2 * config["x2"]
    return sum(PICKED[min(config[name], 2)](x, y) for name in ("h1", "h2"))


def func3c(config: Config) -> float:
    """`func2c` plus a third selected function with another weight."""
    x, y, third = 2 * config["x1"], 2 * config["x2"], config["h3"]
    weighted = (5 * camel(x, y), 2 * rosenbrock(x, y))
    return func2c(config) + (weighted[third] if third < 2 else third * beale(x, y))


def ackley53(config: Config) -> float:
    """Ackley's function of 53 variables; least value 0 at the origin."""
    z = np.array([config[f"x{i}"] for i in range(N_BINARY + 3)], dtype=np.float64)
    bowl = 20 * np.exp(-0.2 * np.sqrt(np.mean(z**2)))
    return float(20 + np.e - bowl - np.exp(np.mean(np.cos(2 * np.pi * z))))


_HEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
_SHARPNESS = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_CENTRES = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann6(config: Config) -> float:
    """Hartmann's function of 6 variables in [0, 1]."""
    z = np.array([config[f"x{i}"] for i in range(6)], dtype=np.float64)
    return float(-_HEIGHTS @ np.exp(-(_SHARPNESS * (z - _CENTRES) ** 2).sum(1)))


def _picks(*sizes: int) -> Document:
    picks = {f"h{i}": choice(*range(size)) for i, size in enumerate(sizes, 1)}
    return {**picks, "x1": real(-1, 1), "x2": real(-1, 1)}


def _ackley_space() -> Document:
    binary = {f"x{i}": choice(0, 1) for i in range(N_BINARY)}
    return binary | {f"x{i}": real(-1, 1) for i in range(N_BINARY, N_BINARY + 3)}


def _entry(
    function: Callable[[Config], float],
    document: Document,
    optimum: float,
    half: Half,
    summary: str,
) -> Entry:
    def make() -> Problem:
        space = load_space(document)
        return Problem(
            function.__name__, space, lambda config, rng: function(config), optimum=optimum
        )

    return Entry(make, "mixed", half, summary)


ENTRIES: dict[str, Entry] = {
    "func2c": _entry(
        func2c, _picks(3, 5), 2 * CAMEL_OPTIMUM / 10, "tuning", "2 choices, 2 numbers"
    ),
    "func3c": _entry(
        func3c, _picks(3, 5, 4), 7 * CAMEL_OPTIMUM / 10, "held-out", "3 choices, 2 numbers"
    ),
    "ackley53": _entry(ackley53, _ackley_space(), 0.0, "held-out", "50 binary, 3 numbers"),
    "hartmann6": _entry(
        hartmann6, {f"x{i}": real(0, 1) for i in range(6)}, HARTMANN_OPTIMUM, "tuning", "6 numbers"
    ),
}
