"""Figure 4 of the Add-Tree paper: regression error over the number of observations.

Regression on Jenatton's small balanced function with shared variables: how many observations do GPs
with the Add-Tree covariance, independent GPs and the tree-structured GP need?

    nasbo bench figure4 --out figure4.png
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasbo.errors import NasboError
from nasbo.history.data import Data
from nasbo.space import Config, Space, Subspace, load_space
from nasbo.surrogates.add_tree import AddTreeGP
from nasbo.surrogates.base import Surrogate, batches_of
from nasbo.surrogates.independent import IndependentGPs
from nasbo.surrogates.tree import TreeGP

Array = NDArray[np.float64]

SIZES = tuple(range(8, 65, 4))
N_SEEDS = 10
N_TEST = 50
PLOT_KINDS = (".png", ".pdf", ".svg")
GOAL = 1e-4
"""The error at which the paper compares: Add-Tree needs 24 observations, independent GPs 44."""
MODELS: dict[str, Callable[[Space], Surrogate]] = {
    "addtree": lambda space: AddTreeGP(space, "se"),
    "independent": lambda space: IndependentGPs(space, kernel="se"),
    "tree": lambda space: TreeGP(space, kernel="se"),
}
"""Surrogates by name, all with the squared exponential kernel, as in the paper."""


def _side(shared: str, choice: str, leaves: tuple[str, str]) -> dict[str, Any]:
    own = {"type": "float", "range": [-1, 1]}
    branches = {at: {leaf: own} for at, leaf in enumerate(leaves)}
    return {
        shared: {"type": "float", "range": [0, 1]},
        choice: {"type": "choice", "range": [0, 1], "submodule": branches},
    }


SMALL_BALANCED: dict[str, Any] = {
    "x1": {
        "type": "choice",
        "range": [0, 1],
        "submodule": {0: _side("r8", "x2", ("x4", "x5")), 1: _side("r9", "x3", ("x6", "x7"))},
    }
}
"""Figure 2 of the paper: shared variables in [0, 1], the leaves' own in [-1, 1]."""


def small_balanced(config: Config) -> float:
    """x^2 + offset of the leaf + shared variable; the smallest value is 0.1."""
    offsets = {"x4": 0.1, "x5": 0.2, "x6": 0.3, "x7": 0.4}
    (leaf,) = offsets.keys() & config.keys()
    shared = config["r8"] if "r8" in config else config["r9"]
    return float(config[leaf] ** 2 + offsets[leaf] + shared)


@dataclass(frozen=True)
class Regression:
    """Mean squared errors on the test set by model: shape (n_seeds, n_sizes) each."""

    sizes: tuple[int, ...]
    errors: dict[str, Array]

    def needed(self, model: str, goal: float = GOAL) -> int | None:
        """The smallest size whose median error is at most ``goal``; ``None`` if there is none."""
        medians = np.median(self.errors[model], axis=0)
        return next((n for n, e in zip(self.sizes, medians, strict=True) if e <= goal), None)


def measure(sizes: Sequence[int] = SIZES, n_seeds: int = N_SEEDS) -> Regression:
    """Fit every model to the first rows of each seed's data, at all sizes."""
    space = load_space(SMALL_BALANCED)
    errors = {name: np.zeros((n_seeds, len(sizes))) for name in MODELS}
    for seed in range(n_seeds):
        data = _draw(space, max(sizes) + N_TEST, np.random.default_rng(seed))
        test = data.take(range(max(sizes), len(data)))
        for at, size in enumerate(sizes):
            train = data.take(range(size))
            for name, make in MODELS.items():
                errors[name][seed, at] = _error(make(space), train, test)
    return Regression(tuple(sizes), errors)


def plot(found: Regression, out: Path) -> None:
    """Write the figure: log10 of the error against the number of observations."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for name, errors in found.errors.items():
        logs = np.log10(errors)
        middle, spread = logs.mean(0), 2 * logs.std(0)
        (line,) = axes.plot(found.sizes, middle, label=name)
        axes.fill_between(
            found.sizes, middle - spread, middle + spread, color=line.get_color(), alpha=0.15
        )
    axes.axhline(np.log10(GOAL), color="grey", linewidth=0.8, linestyle=":")
    axes.set_xlabel("training samples")
    axes.set_ylabel("log10 of the mean squared error")
    axes.legend()
    figure.savefig(out, dpi=150)


def write_table(found: Regression, out: Path) -> None:
    """Write model, size, seed and error of every fit as CSV."""
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "size", "seed", "mse"])
        for name, errors in found.errors.items():
            for (seed, at), error in np.ndenumerate(errors):
                writer.writerow([name, found.sizes[at], seed, f"{error:.6g}"])


def _draw(space: Space, n: int, rng: np.random.Generator) -> Data:
    subspaces: list[Subspace] = [space.random_subspace(rng) for _ in range(n)]
    x = [subspace.encode(subspace.sample_config(rng)) for subspace in subspaces]
    y = [small_balanced(s.decode(row)) for s, row in zip(subspaces, x, strict=True)]
    return Data(space, subspaces, x, np.array(y))


def _error(model: Surrogate, train: Data, test: Data) -> float:
    model.fit(train)
    mean, _ = model.posteriors(batches_of(test))
    predicted = np.array([model.scale.to_score(float(value)) for value in mean])
    return float(((predicted - test.scores) ** 2).mean())


def reproduce(out: Path, sizes: Sequence[int] = SIZES, n_seeds: int = N_SEEDS) -> Iterator[str]:
    """Measure, write the plot and a CSV file, and yield lines that report the errors."""
    if out.suffix.lower() not in PLOT_KINDS:
        raise NasboError(f"the plot must end in {' or '.join(PLOT_KINDS)}, got {str(out)!r}")
    if n_seeds < 1 or min(sizes) < 2:
        raise NasboError(f"seeds >= 1 and sizes >= 2 must hold, but got {n_seeds} and {sizes}")
    found = measure(sizes, n_seeds)
    for name, errors in found.errors.items():
        medians = " ".join(f"{value:.1e}" for value in np.median(errors, axis=0))
        reached = found.needed(name)
        when = f"from {reached} observations on" if reached else "not reached"
        yield f"{name:<12} MSE <= {GOAL:g} {when}; medians {medians}"
    plot(found, out)
    write_table(found, out.with_suffix(".csv"))
    yield f"{out}, {out.with_suffix('.csv')}"
