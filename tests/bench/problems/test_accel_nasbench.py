"""Accel-NASBench: parser, pool and sizes on a small made-up table, and facts of the real one."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest

from nasbo.bench.choice_pool import ChoicePool
from nasbo.bench.pool import PoolDecider, snapped
from nasbo.bench.problem import Problem
from nasbo.bench.problems import accel_nasbench, make_problem
from nasbo.bench.problems.accel_nasbench import (
    CHOSEN,
    FILE,
    MEASURED,
    MOST_LAYERS,
    accel_space,
    describe,
    load_networks,
)
from nasbo.bench.problems.accel_sizes import HEAD, N_CLASSES, STEM, Block, sizes
from nasbo.bench.problems.parameters import choice, ordinal
from nasbo.errors import NasboError
from nasbo.history import Run, config_key
from nasbo.methods import Suggestion
from nasbo.search import Driver, Schedule, Search
from nasbo.space import load_space

N_ROWS = 60


def made_up(rng: np.random.Generator) -> list[str]:
    """A row of choices that the space has, and of measurements."""
    chosen = [
        str(value)
        for most in MOST_LAYERS
        for value in (
            rng.choice([1, 4, 6]), rng.choice([3, 5]), rng.integers(1, most + 1), rng.integers(2),
        )
    ]  # fmt: skip
    return [*chosen, *[f"{40 + 30 * number:.3f}" for number in rng.random(len(MEASURED))]]


def write_table(folder: Path, rows: list[list[str]], names: tuple[str, ...] = ()) -> None:
    path = folder / FILE
    path.parent.mkdir(exist_ok=True)
    lines = [names or (*CHOSEN, *MEASURED), *rows]
    path.write_bytes(lzma.compress("\n".join(",".join(line) for line in lines).encode()))


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Rows of a made-up table in the data folder of the test; one network is there twice."""
    rng = np.random.default_rng(0)
    found = [made_up(rng) for _ in range(N_ROWS)]
    found[7][: len(CHOSEN)] = found[3][: len(CHOSEN)]
    a100 = len(CHOSEN) + MEASURED.index("throughput_a100")
    found[3][a100] = found[5][a100] = ""
    write_table(tmp_path, found)
    monkeypatch.setenv("NASBO_DATA", str(tmp_path))
    return found


def value(row: list[str], name: str) -> float:
    return float(row[(*CHOSEN, *MEASURED).index(name)])


def test_a_network_that_is_there_twice_gets_its_mean(rows: list[list[str]]) -> None:
    networks = load_networks()
    assert len(networks.configs) == N_ROWS - 1
    assert networks.configs[0]["expansion_1"] == int(rows[0][0])
    assert networks.configs[4]["squeeze_2"] == bool(int(rows[4][7]))
    top1 = networks.measured["val_top1"]
    assert top1[3] == pytest.approx((value(rows[3], "val_top1") + value(rows[7], "val_top1")) / 2)
    assert top1[[0, 6, 7]] == pytest.approx([value(rows[at], "val_top1") for at in (0, 6, 8)])


def test_what_a_device_has_not_run_is_no_number(rows: list[list[str]]) -> None:
    speed = load_networks().measured["throughput_a100"]
    assert np.flatnonzero(np.isnan(speed)).tolist() == [5]
    assert speed[3] == value(rows[7], "throughput_a100"), "the mean of what is known"
    assert set(load_networks().measured) == set(MEASURED)


def test_the_value_of_a_member_is_its_error(rows: list[list[str]]) -> None:
    problem = make_problem("accel_nasbench")
    rng, networks = np.random.default_rng(0), load_networks()
    errors = [problem.evaluate(config, rng) for config in networks.configs]
    assert errors == (100 - networks.measured["val_top1"]).tolist()
    assert problem.truth is None
    outside = next(
        config
        for config in (problem.space.sample(rng) for _ in range(100))
        if config not in networks.configs
    )
    with pytest.raises(NasboError, match="only configs of the pool have values"):
        problem.evaluate(outside, rng)


def n_changed(one: dict[str, object], other: dict[str, object]) -> int:
    return sum(one[name] != other[name] for name in one)


def test_the_nearest_unused_network_is_reported(rows: list[list[str]]) -> None:
    problem, rng = make_problem("accel_nasbench"), np.random.default_rng(1)
    pool, used = list(load_networks().configs), set[str]()
    while pool:
        wanted = problem.space.sample(rng)
        (found,) = snapped(problem, [Suggestion(wanted)], used)
        assert n_changed(wanted, found.config) == min(n_changed(wanted, one) for one in pool)
        pool.remove(found.config)
        used.add(config_key(found.config))
    assert snapped(problem, [Suggestion(wanted)], used) == []


def test_ties_go_to_fewer_levels_and_then_to_the_first() -> None:
    space = load_space({"a": ordinal(1, 2, 3), "b": choice("x", "y", "z")})
    configs = [{"a": 3, "b": "x"}, {"a": 1, "b": "z"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}]
    pool = ChoicePool(space, lambda: configs)
    used = set[str]()
    order = []
    while (found := pool.snap({"a": 1, "b": "x"}, used)) is not None:
        order.append(configs.index(found))
        used.add(config_key(found))
    assert order == [1, 2, 3, 0], "unordered choices have not moved at all"
    assert pool.row({"a": 2, "b": "x"}) == 3


def test_a_search_reports_networks_of_the_pool(rows: list[list[str]]) -> None:
    problem = make_problem("accel_nasbench")
    search = Search(problem.space, "random", "min", 0)
    driver = Driver(search, Schedule("async", budget=9), PoolDecider(problem))
    for _ in range(9):
        run = driver.next(1)
        assert isinstance(run, Run)
        config = search.history.trial(run.number).copy().config
        driver.on_end(run.number, problem.evaluate(config, np.random.default_rng(0)))
    assert len({config_key(trial.config) for trial in search.history.trials}) == 9


def test_a_table_that_is_not_there_says_where_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NASBO_DATA", str(tmp_path))
    with pytest.raises(
        NasboError,
        match=r"accel_nasbench\.csv\.xz.*\$NASBO_DATA.*afzalxo.*jsons\.tar\.gz.*block0_e",
    ):
        make_problem("accel_nasbench")
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_text("no table")
    with pytest.raises(NasboError, match="the table of Accel-NASBench is needed"):
        make_problem("accel_nasbench")


def test_another_table_is_refused(rows: list[list[str]], tmp_path: Path) -> None:
    def refusal(changed: list[list[str]], names: tuple[str, ...] = ()) -> str:
        write_table(tmp_path, changed, names)
        accel_nasbench._load.cache_clear()
        with pytest.raises(NasboError) as caught:
            make_problem("accel_nasbench")
        return str(caught.value)

    assert "missing: val_top1" in refusal(rows, (*CHOSEN, "val_acc", *MEASURED[1:]))
    assert "missing: values" in refusal([row[:-1] for row in rows])
    assert "'expansion_1' must be" in refusal([["2", *rows[0][1:]], *rows[1:]])
    at = len(CHOSEN)
    assert "val_top1 must be a number" in refusal([[*rows[0][:at], "", *rows[0][at + 1 :]]])


def test_sizes_of_a_network_counted_by_hand() -> None:
    # Seven blocks of one 3x3 layer that does not expand: depthwise and pointwise, no more.
    blocks = [Block(1, 3, 1, False)] * 7
    widths, sides = [STEM, 16, 24, 40, 80, 112, 192, 320], [112, 112, 56, 28, 14, 14, 7, 7]
    params = 27 * STEM + 2 * STEM + (320 + 2) * HEAD + (HEAD + 1) * N_CLASSES
    macs = (27 + 4) * STEM * 112**2 + (320 + 4) * HEAD * 49 + HEAD * 50 + HEAD * N_CLASSES
    for inputs, outputs, side in zip(widths, widths[1:], sides[1:], strict=False):
        params += 9 * inputs + 2 * inputs + inputs * outputs + 2 * outputs
        macs += (9 * inputs + 4 * inputs + inputs * outputs + 4 * outputs) * side**2
    assert sizes(blocks) == {"params": params, "macs": macs}


def test_expansion_squeeze_and_further_layers_are_counted_by_hand() -> None:
    plain = sizes([Block(1, 3, 1, False)] * 7)
    squeezed = sizes([*[Block(1, 3, 1, False)] * 6, Block(1, 3, 1, True)])
    # On 192 channels and maps of 7x7; hidden are 48.
    assert squeezed["params"] - plain["params"] == 2 * 192 * 48 + 48 + 192
    assert squeezed["macs"] - plain["macs"] == 2 * 192 * 48 + 192 * 50
    deep = sizes([*[Block(1, 3, 1, False)] * 6, Block(1, 3, 2, False)])
    assert deep["params"] - plain["params"] == (9 + 2) * 320 + (320 + 2) * 320
    wide = sizes([*[Block(1, 3, 1, False)] * 6, Block(4, 5, 1, False)])
    expanded = (192 + 2) * 768 + (25 + 2) * 768 + (768 + 2) * 320
    assert wide["params"] - plain["params"] == expanded - (9 + 2) * 192 - (192 + 2) * 320


def test_sizes_are_known_of_every_config() -> None:
    problem_space, rng = accel_space(), np.random.default_rng(0)
    found = [describe(problem_space.sample(rng)) for _ in range(50)]
    assert all(number > 0 for one in found for number in one.values())
    assert len({one["params"] for one in found}) == 50


@pytest.fixture(scope="module")
def real() -> Problem:
    """The problem with the real table; without it the error says where that comes from."""
    return make_problem("accel_nasbench")


@pytest.mark.system
def test_facts_of_the_real_table(real: Problem) -> None:
    networks = load_networks()
    assert len(networks.configs) == 5_125, "of 5,138 rows 13 are of a network that was there before"
    rng = np.random.default_rng(0)
    errors = [real.evaluate(config, rng) for config in networks.configs]
    assert min(errors) == pytest.approx(real.optimum, abs=1e-9)
    assert max(errors) == pytest.approx(57.15)
    unknown = {name: int(np.isnan(column).sum()) for name, column in networks.measured.items()}
    assert unknown["throughput_a100"] == unknown["params_m"] == 0
    assert unknown["throughput_3090"] == 3


@pytest.mark.system
def test_sizes_are_those_of_the_real_table(real: Problem) -> None:
    networks = load_networks()
    found = [describe(config) for config in networks.configs]
    for name, column in (("params", "params_m"), ("macs", "macs_m")):
        told = 1e6 * networks.measured[column]
        assert [one[name] for one in found] == pytest.approx(told, abs=0.5)
