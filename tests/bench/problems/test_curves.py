"""Problems with learning curves: TaskSet, networks by epochs, noise, misleading early values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nasbo.bench.pool import Pool, snapped
from nasbo.bench.problem import Curve, Problem
from nasbo.bench.problems import PROBLEMS, epochs, make_problem
from nasbo.bench.problems.curves import noise_deviation, with_curve_noise, with_lying_curve
from nasbo.bench.problems.taskset import FILE, N_STEPS, NAMES, TASKS
from nasbo.errors import NasboError
from nasbo.history import config_key
from nasbo.methods import Suggestion
from nasbo.space.subspace import Config
from tests.bench.tiny import plain_problem, pool_problem

N_CONFIGS = 40


@pytest.fixture
def taskset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of a few synthetic configs in the data folder of the test."""
    rng, arrays = np.random.default_rng(0), {}
    for long_name, _ in TASKS.values():
        arrays[f"ts_{long_name}_X"] = rng.random((N_CONFIGS, len(NAMES)))
        arrays[f"ts_{long_name}_V"] = rng.random((N_CONFIGS, N_STEPS))
    path = tmp_path / FILE
    path.parent.mkdir()
    np.savez(path, **arrays)
    monkeypatch.setenv("NASBO_DATA", str(tmp_path))
    return path


def members(problem: Problem, n: int = N_CONFIGS) -> list[Config]:
    """Configs of a problem; those of a pool once each."""
    rng = np.random.default_rng(1)
    drawn = [Suggestion(problem.space.sample(rng)) for _ in range(n)]
    return [one.config for one in snapped(problem, drawn, ())]


def curve_of(problem: Problem) -> Curve:
    assert problem.curve is not None
    return problem.curve


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name.startswith("taskset_")])
def test_the_end_of_a_curve_is_the_value(name: str, taskset: Path) -> None:
    problem = make_problem(name)
    curve = curve_of(problem)
    assert (curve.n_steps, curve.n_untrained, len(curve.finals())) == (51, 1, N_CONFIGS)
    for config in members(problem, 5):
        ends = [curve.at(config, 51, np.random.default_rng(3)) for _ in range(2)]
        assert ends == [problem.evaluate(config, np.random.default_rng(3))] * 2
        assert problem.true_value(config) in curve.finals()


def test_a_table_that_is_not_there_says_where_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NASBO_DATA", str(tmp_path))
    with pytest.raises(NasboError, match=r"taskset\.npz.*\$NASBO_DATA.*DyHPO.*ts_NAME_X"):
        make_problem("taskset_gru64")
    path = tmp_path / FILE
    path.parent.mkdir()
    path.write_text("no table")
    with pytest.raises(NasboError, match="the table of TaskSet is needed"):
        make_problem("taskset_gru64")


def test_a_table_of_another_shape_is_refused(taskset: Path) -> None:
    long_name, _ = TASKS["gru64"]
    np.savez(
        taskset, **{f"ts_{long_name}_X": np.ones((3, 8)), f"ts_{long_name}_V": np.ones((3, 9))}
    )
    with pytest.raises(NasboError, match=r"8 numbers and 51 losses per config.*\(3, 9\)"):
        make_problem("taskset_gru64")


def test_snapping_takes_the_nearest_unused_config_and_none_twice() -> None:
    problem = pool_problem()
    rng = np.random.default_rng(0)
    wanted = [Suggestion(problem.space.sample(rng), "model", {"k": k}) for k in range(40)]
    found = snapped(problem, wanted, ())
    keys = [config_key(one.config) for one in found]
    assert len(keys) == len(set(keys)) == 30, "the pool is used up"
    assert found[3].info == {"k": 3}
    again = snapped(problem, wanted[:5], keys[:7])
    assert not {config_key(one.config) for one in again} & set(keys[:7])
    assert snapped(problem, [found[4]], ()) == [found[4]], "a member is its own nearest"
    nearest = snapped(problem, [Suggestion({"a": 0.5, "b": 0.5})], ())[0].config
    distances = [(c["a"] - 0.5) ** 2 + (c["b"] - 0.5) ** 2 for c in (f.config for f in found)]
    assert (nearest["a"] - 0.5) ** 2 + (nearest["b"] - 0.5) ** 2 == min(distances)


def test_configs_outside_of_a_pool_have_no_value() -> None:
    pool = Pool(("a",), lambda: np.array([[0.25], [0.75]]))
    assert pool.row({"a": 0.75}) == 1
    with pytest.raises(NasboError, match="only configs of the pool have values"):
        pool.row({"a": 0.5})


def test_problems_without_a_pool_are_left_alone() -> None:
    problem = plain_problem()
    chosen = [Suggestion(problem.space.default_config())]
    assert snapped(problem, chosen, {config_key(chosen[0].config)}) == chosen


def test_noise_has_its_deviation_and_half_of_its_variance_is_the_configs() -> None:
    plain = pool_problem()
    noisy, curve = with_curve_noise(plain, "pool_noisy"), curve_of(plain)
    better = np.sort(curve.finals())[:15]
    assert noise_deviation(curve) == pytest.approx(0.5 * better.std())
    rng, configs = np.random.default_rng(0), members(plain, 200)
    errors = np.array(
        [[curve_of(noisy).at(c, 9, rng) - curve.at(c, 9, rng) for _ in range(200)] for c in configs]
    )
    half = noise_deviation(curve) ** 2 / 2
    assert errors.var(1).mean() == pytest.approx(half, rel=0.1)
    assert errors.mean(1).var() == pytest.approx(half, rel=0.6), "of thirty configs"
    assert noisy.is_returned
    assert [noisy.true_value(c) for c in configs] == [plain.true_value(c) for c in configs]


def test_noise_follows_from_the_generator() -> None:
    noisy = with_curve_noise(pool_problem(), "pool_noisy")
    config = members(noisy, 1)[0]
    at = curve_of(noisy).at
    first, second, other = (at(config, 3, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == second != other


def test_lying_values_say_nothing_before_the_end() -> None:
    plain = pool_problem()
    lying = with_lying_curve(plain, "pool_lying")
    curve, rng = curve_of(lying), np.random.default_rng(0)
    configs = members(plain, 200)
    ends = [curve.at(config, 18, rng) for config in configs]
    assert ends == [plain.true_value(config) for config in configs]
    early = [curve.at(config, 6, rng) for config in configs]
    assert early == [curve.at(config, 6, rng) for config in configs]
    assert abs(np.corrcoef(early, ends)[0, 1]) < 0.5
    assert (np.array(early) != np.array(ends) - 1 / 18 + 1 / 6).sum() > 20
    assert not lying.is_returned


@pytest.mark.parametrize("kind", ["", "_noisy", "_lying"])
def test_networks_are_trained_once_by_epochs(
    kind: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epochs, "N_FINALS", 3)
    name = f"mlp_epochs_diabetes{kind}"
    problem, rng = make_problem(name), np.random.default_rng(0)
    assert problem.space.n_subspaces == 6
    config = problem.space.sample(rng)
    curve = curve_of(problem)
    losses = [curve.at(config, step, np.random.default_rng(0)) for step in (1, 9, 27)]
    assert all(0 < loss < 7 for loss in losses)
    assert losses[2] == problem.evaluate(config, np.random.default_rng(0))
    monkeypatch.setattr(epochs, "train_curve", None)
    again = curve_of(make_problem(name))
    assert [again.at(config, s, np.random.default_rng(0)) for s in (1, 9, 27)] == losses
    store = PROBLEMS[name].store
    assert store is not None
    assert len(store().results()) % 27 == 0


def test_a_network_learns_what_can_be_learned(data: Path) -> None:
    problem = make_problem("mlp_epochs_diabetes")
    config = problem.space.canonical(
        {"weight_decay": 1e-4, "optimiser": "adam", "rate": 0.01, "beta1": 0.9, "layers": 2,
         "width": [16, 16], "activation": ["relu", "tanh"], "dropout": [0.0, 0.1]}
    )  # fmt: skip
    first, last = (curve_of(problem).at(config, s, np.random.default_rng()) for s in (1, 27))
    assert last < min(first, 0.62)
