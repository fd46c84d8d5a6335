"""Cost of a suggestion: measured on small histories, printed as a table."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from nasbo.bench.addtree_regression import SMALL_BALANCED
from nasbo.bench.cost import Cost, bowl, installed_methods, measure_costs, table
from nasbo.cli import cli
from nasbo.errors import NasboError
from nasbo.methods import METHODS
from nasbo.space import load_space


def test_dear_methods_cost_more_than_cheap_ones() -> None:
    lines: list[str] = []
    costs = measure_costs(["gp", "random"], sizes=(10, 20), repeats=2, progress=lines.append)
    gp, random = costs
    assert [gp.method, random.method] == ["gp", "random"]
    assert set(gp.seconds) == {10, 20}
    assert gp.seconds[20] > random.seconds[20]
    assert lines == ["round 1 of 2", "round 2 of 2"]


def test_spaces_of_very_many_subspaces_can_be_measured() -> None:
    (cost,) = measure_costs(["evolution"], "nas_cifar10_conditional", (30,), 1)
    assert cost.seconds[30] > 0.0
    assert cost.growth == 1.0


def test_growth_is_between_the_smallest_and_the_largest_history() -> None:
    cost = Cost("tree", {50: 0.2, 100: 0.5, 200: 0.3})
    assert cost.growth == pytest.approx(1.5)
    head, first, second = table([cost, Cost("gp", {50: 0.1, 100: 0.1, 200: 0.2})])
    assert head.split() == ["method", "n", "=", "50", "n", "=", "100", "n", "=", "200", "growth"]
    assert first.split() == ["gp", "0.1000", "0.1000", "0.2000", "x", "2.00"]
    assert second.split()[0] == "tree"


def test_every_method_whose_package_is_there_is_measured() -> None:
    names = installed_methods()
    assert set(METHODS) - set(names) <= {"smac", "tpe"}
    assert "tree" in names


def test_bowl_has_its_own_bottom_in_each_subspace() -> None:
    space = load_space(SMALL_BALANCED)
    bottoms = [s.decode(np.full(s.n_free, 0.3 + 0.1 * s.index)) for s in space.subspaces()]
    assert [bowl(space, at) for at in bottoms] == pytest.approx([0.0, 0.1, 0.2, 0.3], abs=1e-6)


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(NasboError, match="repeats >= 1 and sizes >= 2 must hold"):
        measure_costs(["random"], sizes=(1, 50))


def test_command_prints_the_table() -> None:
    words = ["-m", "random", "-m", "evolution", "--size", "10", "--size", "30", "--repeats", "1"]
    done = CliRunner().invoke(cli, ["bench", "cost", *words])
    assert done.exit_code == 0, done.output
    assert "growth" in done.output
    assert "evolution" in done.output
