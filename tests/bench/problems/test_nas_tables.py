"""Tables of trained networks: the stated optima are those of the packages' data."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from nasbo.bench.problems import make_problem
from nasbo.bench.problems.nas_tables import EDGES, GRAPHS, LAYERS, NASBENCH201_SETS, OPERATIONS


@pytest.mark.parametrize("data", sorted(NASBENCH201_SETS))
def test_the_best_cell_has_the_stated_error(data: str) -> None:
    problem = make_problem(f"nasbench201_{data}")
    assert problem.truth is not None
    cells = product(OPERATIONS, repeat=6)
    errors = [problem.truth(dict(zip(EDGES, cell, strict=True))) for cell in cells]
    assert len(errors) == 15_625
    assert min(errors) == pytest.approx(problem.optimum, abs=1e-9)
    assert min(errors) >= NASBENCH201_SETS[data][1] - 1e-9


@pytest.mark.parametrize("data", sorted(NASBENCH201_SETS))
def test_means_are_the_truth_of_the_noisy_values(data: str) -> None:
    noisy, mean = (make_problem(f"nasbench201_{data}{kind}") for kind in ("", "_mean"))
    assert noisy.truth is not None
    assert mean.truth is None
    assert (mean.optimum, mean.space.fingerprint()) == (noisy.optimum, noisy.space.fingerprint())
    rng = np.random.default_rng(0)
    for config in (noisy.space.sample(rng) for _ in range(50)):
        value = mean.evaluate(config, rng)
        assert value == mean.evaluate(config, rng) == noisy.truth(config)
        drawn = {noisy.evaluate(config, rng) for _ in range(20)}
        assert min(drawn) <= value <= max(drawn)


def test_a_cell_without_operations_only_guesses() -> None:
    problem = make_problem("nasbench201_cifar10")
    value = problem.evaluate(dict.fromkeys(EDGES, "none"), np.random.default_rng(0))
    assert value == pytest.approx(90, abs=1)


def test_the_best_graph_network_has_the_stated_error() -> None:
    from nas_bench_graph import light_read

    problem = make_problem("nasbench_graph_cora")
    best = max(row["valid_perf"] for row in light_read("cora").values())
    assert problem.optimum == pytest.approx(1 - best, abs=1e-12)


def test_equal_graph_networks_have_equal_errors_and_skipping_is_the_worst() -> None:
    problem, rng = make_problem("nasbench_graph_cora"), np.random.default_rng(0)

    def error(graph: str, *operations: str) -> float:
        config = {"graph": graph, **dict(zip(LAYERS, operations, strict=True))}
        return problem.evaluate(problem.space.canonical(config), rng)

    assert error("0000", "gcn", "gat", "fc", "gin") == error("0000", "gin", "fc", "gat", "gcn")
    assert error("0123", "gcn", "gat", "fc", "gin") != error("0123", "gin", "fc", "gat", "gcn")
    skipping = error(GRAPHS[0], "skip", "skip", "skip", "skip")
    sampled = [problem.evaluate(problem.space.sample(rng), rng) for _ in range(300)]
    assert skipping >= max(sampled)
