"""Synthetic functions: known values, attained optima, and shared parameters."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from nasbo.bench.problem import Problem
from nasbo.bench.problems import blocks, branches, make_problem, mixed, pest, tree_many
from nasbo.space import Config

RNG = np.random.default_rng(0)


def value(problem: Problem, **config: Any) -> float:
    return problem.evaluate(problem.space.canonical(config), RNG)


def climb(problem: Problem, n_starts: int, seed: int = 0) -> float:
    """The best of local searches that change one entry of a config at a time."""
    rng = np.random.default_rng(seed)
    best = np.inf
    for _ in range(n_starts):
        subspace = problem.space.random_subspace(rng)
        x = subspace.sample(1, rng)[0]
        score = true(problem, subspace.decode(x))
        is_better = True
        while is_better:
            is_better = False
            for column, coordinate in enumerate(subspace.free):
                levels = coordinate.parameter.n_levels
                grid = np.linspace(0, 1, levels) if levels else rng.random(8)
                for unit in grid:
                    other = x.copy()
                    other[column] = unit
                    found = true(problem, subspace.decode(other))
                    if found < score - 1e-12:
                        x, score, is_better = other, found, True
        best = min(best, score)
    return best


def true(problem: Problem, config: Config) -> float:
    return problem.truth(config) if problem.truth else problem.evaluate(config, RNG)


def test_jenatton_as_published() -> None:
    small = make_problem("jenatton_small")
    assert value(small, x1=0, r8=0.0, x2=0, x4=0.0) == pytest.approx(0.1)
    assert value(small, x1=1, r9=0.25, x3=1, x7=-0.5) == pytest.approx(0.25 + 0.4 + 0.25)
    large = make_problem("jenatton_large")
    assert value(large, x1=0, r16=0.0, x2=0, x4=0, x8=0.0) == pytest.approx(0.1)
    assert value(large, x1=1, r17=1.0, x3=1, x7=1, x15=1.0) == pytest.approx(1 + 0.8 + 1)
    bare = make_problem("jenatton_small_unshared")
    assert value(bare, x1=0, x2=1, x5=0.5) == pytest.approx(0.25 + 0.2)


def test_jenatton_counts_the_variables_of_the_paper() -> None:
    space = make_problem("jenatton_large").space
    floats = [name for name in space.names if name.startswith("r") or int(name[1:]) >= 8]
    assert (len(floats), len(space.names) - len(floats)) == (10, 7)


@pytest.mark.parametrize("size", ["small", "large"])
def test_jenatton_shifted_has_its_optimum_off_centre_in_one_leaf(size: str) -> None:
    problem = make_problem(f"jenatton_{size}_shifted")
    lowest = []
    for subspace in problem.space.subspaces():

        def value_at(x: np.ndarray, subspace: Any = subspace) -> float:
            return problem.evaluate(subspace.decode(x), RNG)

        found = minimize(value_at, np.full(2, 0.45), bounds=[(0, 1)] * 2, tol=1e-14)
        lowest.append(found.fun)
        assert abs(found.x - 0.5).max() > 0.02
    leaves = np.arange(1, problem.space.n_subspaces + 1) / 10
    assert sorted(lowest) == pytest.approx(list(leaves), abs=1e-8)
    assert lowest[0] > min(lowest)


@pytest.mark.parametrize("name", ["share", "noshare"])
def test_the_optimum_of_branches_is_what_many_descents_reach(name: str) -> None:
    problem, rng = make_problem(name), np.random.default_rng(5)
    lowest = np.inf
    for subspace in problem.space.subspaces():
        for _ in range(4):

            def value_at(x: np.ndarray, subspace: Any = subspace) -> float:
                return problem.evaluate(subspace.decode(x), RNG)

            start = rng.random(4)
            lowest = min(lowest, minimize(value_at, start, bounds=[(0, 1)] * 4, tol=1e-13).fun)
    assert problem.optimum is not None
    assert 0 <= lowest - problem.optimum < 1e-7


def test_branches_share_where_they_say_so() -> None:
    rng = np.random.default_rng(2)
    points = [dict(zip("abcd", rng.random(4), strict=True)) for _ in range(60)]
    agreement = {}
    for name in ("share", "noshare"):
        problem = make_problem(name)
        rows = [[value(problem, algorithm=b, **p) for p in points] for b in branches.BRANCHES]
        pairs = np.corrcoef(rows)[np.triu_indices(5, 1)]
        agreement[name] = float(pairs.mean())
    assert agreement["share"] > 0.8
    assert agreement["noshare"] < 0.5


def test_the_optimum_of_blocks_is_reached_and_not_passed() -> None:
    problem = make_problem("blocks")
    assert problem.optimum is not None
    assert problem.optimum == pytest.approx(blocks.truth(_best_blocks()), abs=1e-12)
    assert climb(problem, n_starts=3) >= problem.optimum


def _best_blocks() -> Config:
    """The best of many chains of operations, each with its best kernels and channels."""
    worth, best, least = blocks.draw_worth(), None, np.inf
    for n in blocks.COUNTS:
        batch = 0.5
        for operations in _promising(worth, n):
            config = _greedy(worth, operations)
            config |= {
                "n_blocks": n,
                "operation": [blocks.OPERATIONS[o] for o in operations],
                "learning_rate": 10 ** (4 * (worth.best_rate(n, batch) - 1)),
                "batch": 64,
            }
            if (found := blocks.truth(config)) < least:
                best, least = config, found
    assert best is not None
    return best


def _promising(worth: blocks.Worth, n: int) -> list[tuple[int, ...]]:
    """The chains with the largest worth at full width."""
    own = [[max(worth.block(at, o, k, 1.0) for k in range(3)) for o in range(4)] for at in range(n)]

    def total(chain: tuple[int, ...]) -> float:
        pairs = sum(worth.pair[a, b] for a, b in pairwise(chain))
        return float(sum(own[at][o] for at, o in enumerate(chain)) + pairs)

    return sorted(product(range(4), repeat=n), key=total, reverse=True)[:30]


def _greedy(worth: blocks.Worth, operations: tuple[int, ...]) -> Config:
    """Greedy search over kernels, then over channels one at a time, until nothing improves."""
    kernels = [
        max(range(3), key=lambda k, at=at, o=o: worth.block(at, o, k, 0.0))  # type: ignore[misc]
        for at, o in enumerate(operations)
    ]
    pairs = sum(worth.pair[a, b] for a, b in pairwise(operations))
    levels = np.arange(8) / 7
    rows = np.array(
        [[worth.block(at, o, k, w) for w in levels] for at, (o, k) in
         enumerate(zip(operations, kernels, strict=True))]
    )  # fmt: skip
    picks = np.full(len(operations), 7)
    for _ in range(4):
        for at in range(len(operations)):
            rest = rows[np.arange(len(picks)), picks].sum() - rows[at, picks[at]] + pairs
            width = levels[picks].sum() - levels[picks[at]]
            losses = [worth.loss(rest + rows[at, c], width + levels[c]) for c in range(8)]
            picks[at] = int(np.argmin(losses))
    return {
        "kernel": [blocks.KERNELS[k] for k in kernels],
        "channels": [int(pick) + 1 for pick in picks],
    }


def test_blocks_noise_is_a_twentieth_of_the_range() -> None:
    problem, rng = make_problem("blocks"), np.random.default_rng(0)
    configs = [problem.space.sample(rng) for _ in range(1500)]
    values = [blocks.truth(config) for config in configs]
    spread = np.quantile(values, 0.98) - min(values)
    noise = [problem.evaluate(c, rng) - v for c, v in zip(configs, values, strict=True)]
    assert np.std(noise) == pytest.approx(0.05 * spread, rel=0.15)


def test_the_optimum_of_many_trees_is_reached_by_climbing_over_operations() -> None:
    problem = make_problem("tree_many")
    best = min(_climb_operations(stride) for stride in tree_many.STRIDES)
    assert problem.optimum is not None
    assert best == pytest.approx(problem.optimum, abs=1e-9)
    assert climb(problem, n_starts=2) >= problem.optimum


def _climb_operations(stride: int) -> float:
    """All 4^7 patterns at depth 7 scored by their blocks' best parts, the best one evaluated."""
    worth, at_stride = tree_many.draw_worth(), tree_many.STRIDES.index(stride)
    best: dict[tuple[int, int], tuple[float, dict[str, Any]]] = {}
    for at, operation in product(range(7), range(4)):
        for pick in product(range(3), range(2), range(3), range(3), range(2)):
            levels = dict(zip(tree_many.LEVELS, pick, strict=False))
            gain = worth.block(at, at_stride, (operation, levels, pick[-1]))
            if (at, operation) not in best or gain > best[at, operation][0]:
                best[at, operation] = gain, {**levels, "expand": pick[-1]}
    lowest = np.inf
    for n in tree_many.COUNTS:
        chains = product(range(4), repeat=n)
        top = max(chains, key=lambda chain: _chain_worth(chain, best, worth.pair))
        lowest = min(lowest, tree_many.evaluate(_tree_config(top, best, stride)))
    return lowest


def _chain_worth(chain: tuple[int, ...], best: dict[Any, Any], pair: np.ndarray) -> float:
    own = sum(best[at, operation][0] for at, operation in enumerate(chain))
    return float(own + sum(pair[a, b] for a, b in pairwise(chain)))


def _tree_config(chain: tuple[int, ...], best: dict[Any, Any], stride: int) -> Config:
    worth, n = tree_many.draw_worth(), len(chain)
    parts = [best[at, operation][1] for at, operation in enumerate(chain)]
    rate = worth.rate + worth.rate_slope * (n - 5.5)
    config: Config = {
        "nums_block": n,
        "conv_op": list(chain),
        "expand_ratio": [
            tree_many.EXPANSIONS[part["expand"]] if o == 2 else None
            for o, part in zip(chain, parts, strict=True)
        ],
        "stride_layer": stride,
        "learning_rate": 0.07 + 0.08 * rate,
        "step_size": 70 + int(np.argmin([(s / 19 - worth.step) ** 2 for s in range(20)])),
        "batch_size": 64,
    }
    for name, values in tree_many.LEVELS.items():
        config[name] = [values[part[name]] for part in parts]
    return make_problem("tree_many").space.canonical(config)


def test_mixed_functions_at_their_optima() -> None:
    point = {"x1": 0.089842 / 2, "x2": -0.712656 / 2}
    two, three = make_problem("func2c"), make_problem("func3c")
    assert value(two, h1=1, h2=1, **point) == pytest.approx(two.optimum, abs=1e-9)
    assert value(three, h1=1, h2=1, h3=0, **point) == pytest.approx(three.optimum, abs=1e-9)
    zero = {f"x{i}": 0 for i in range(53)}
    assert value(make_problem("ackley53"), **zero) == pytest.approx(0, abs=1e-12)
    peak = (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573)
    hartmann = make_problem("hartmann6")
    found = value(hartmann, **{f"x{i}": v for i, v in enumerate(peak)})
    assert found == pytest.approx(hartmann.optimum, abs=1e-5)


def test_choices_pick_functions_and_the_last_values_all_pick_beale() -> None:
    two, three = make_problem("func2c"), make_problem("func3c")
    assert value(two, h1=0, h2=0, x1=0.5, x2=0.5) == pytest.approx(0)
    sixes = [value(two, h1=0, h2=h, x1=0.5, x2=0.5) for h in (2, 3, 4)]
    assert sixes == pytest.approx([mixed.beale(1, 1)] * 3)
    assert mixed.beale(3, 0.5) == 0
    thirds = [value(three, h1=0, h2=0, h3=h, x1=0.5, x2=0.5) for h in range(4)]
    expected = [5 * mixed.camel(1, 1), 0, 2 * mixed.beale(1, 1), 3 * mixed.beale(1, 1)]
    assert thirds == pytest.approx(expected)


def test_pests_are_controlled_at_a_price() -> None:
    rng = np.random.default_rng(0)
    nothing = pest.simulate([0] * 25, 4000, rng)
    always = pest.simulate([4] * 25, 4000, rng)
    assert 15 < nothing < 25  # nothing is paid; pests are over the limit at most stations
    assert 12.5 < always < 13.5  # 25 times half the price, pests rarely over the limit
    discounted = pest.simulate([1] * 25, 4000, rng) - pest.simulate([1] + [0] * 24, 4000, rng)
    assert discounted < 25
