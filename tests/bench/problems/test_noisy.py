"""Noisy problems: halves, standard deviation of the noise, new noise at each evaluation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nasbo.bench.problem import Config, Problem
from nasbo.bench.problems import PROBLEMS, make_problem, noisy, pipelines
from nasbo.errors import NasboError

PAIRS = {
    "nas_proxy": "nas_proxy_other",
    "nasbench201_cifar10_noisy": "nasbench201_cifar100_noisy",
    "cash_log_diabetes_noisy": "cash_log_steel_noisy",
    "pipeline_diabetes_noisy": "pipeline_monks2_noisy",
    "jenatton_small_shifted_noisy": "jenatton_large_shifted_noisy",
    "blocks_noisy": "share_noisy",
}
SPLITS = ("cash_log_diabetes_noisy", "pipeline_monks2_noisy")


def truth(problem: Problem, config: Config) -> float:
    assert problem.truth is not None
    return problem.truth(config)


def query(problem: Problem, config: Config, seed: int, number: int) -> float:
    return problem.evaluate(config, np.random.default_rng([seed, number]))


def test_the_group_is_pairs_of_a_tuning_and_a_held_out_problem() -> None:
    halves = {name: entry.half for name, entry in PROBLEMS.items() if entry.group == "noisy"}
    assert halves == dict.fromkeys(PAIRS, "tuning") | dict.fromkeys(PAIRS.values(), "held-out")


@pytest.mark.parametrize("name", [*PAIRS, *PAIRS.values()])
def test_returned_configs_are_scored(name: str) -> None:
    problem = PROBLEMS[name].make()
    assert problem.is_returned
    assert problem.is_truth_costly == (PROBLEMS[name].cost == "< 1 s")
    assert (problem.optimum is None) == problem.is_truth_costly


@pytest.mark.parametrize("base", sorted(noisy.SIGNALS))
def test_noise_is_a_share_of_the_deviation_of_the_signal(base: str) -> None:
    problem, plain = make_problem(f"{base}_noisy"), make_problem(base)
    rng = np.random.default_rng(1)
    configs = [problem.space.sample(rng) for _ in range(4000)]
    signal = np.std([truth(problem, config) for config in configs])
    assert signal == pytest.approx(noisy.SIGNALS[base], rel=0.04)
    errors = [query(problem, configs[0], 0, i) - truth(problem, configs[0]) for i in range(1000)]
    share = 0.1 if base.startswith("jenatton") else 0.3
    assert np.std(errors) == pytest.approx(share * signal, rel=0.1)
    assert truth(problem, configs[0]) == plain.score(configs[0], query(plain, configs[0], 0, 0))
    assert problem.optimum == plain.optimum


@pytest.mark.parametrize("name", ["nasbench201_cifar10_noisy", "nasbench201_cifar100_noisy"])
def test_one_of_several_training_runs_is_drawn(name: str) -> None:
    problem, rng = make_problem(name), np.random.default_rng(0)
    assert problem.optimum == make_problem(name.removesuffix("_noisy")).optimum
    configs = [problem.space.sample(rng) for _ in range(20)]
    drawn = [{query(problem, config, 0, i) for i in range(40)} for config in configs]
    assert max(len(values) for values in drawn) == 3
    several = [(c, v) for c, v in zip(configs, drawn, strict=True) if len(v) == 3]
    assert all(truth(problem, c) == pytest.approx(np.mean(list(v))) for c, v in several)


@pytest.mark.parametrize("name", SPLITS)
def test_learners_are_measured_on_a_fresh_split_each_time(
    name: str, data: Path, tables: Path
) -> None:
    problem = make_problem(name)
    config = problem.space.sample(np.random.default_rng(4))
    values = [query(problem, config, 0, number) for number in range(3)]
    assert len(set(values)) == 3
    assert query(make_problem(name), config, 0, 1) == values[1]
    store = PROBLEMS[name].store
    assert store is not None
    assert sorted(result.value for result in store().results()) == sorted(values)
    assert store().path.parent == tables


def test_the_truth_of_a_learner_is_its_mean_over_ten_splits(data: Path) -> None:
    problem = make_problem("pipeline_diabetes_noisy")
    config = next(
        config
        for config in map(problem.space.sample, map(np.random.default_rng, range(100)))
        if config["estimator"] == "tree"
    )
    each = [pipelines.FAMILY.measure(config, "diabetes", [split]) for split in range(10)]
    assert len(set(each)) == 10
    assert truth(problem, config) == pytest.approx(np.mean(each), rel=1e-12)
    assert truth(problem, config) == truth(problem, config)


def test_a_problem_without_truth_cannot_score_what_is_returned() -> None:
    plain = make_problem("share")
    with pytest.raises(NasboError, match="p: truth must be given"):
        Problem("p", plain.space, plain.evaluate, is_returned=True)
