"""Simulated clusters: the clock, waiting, and decisions equal to those of a sweep."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nasbo.bench.cluster import Cluster, Course, Durations, Simulation, simulate
from nasbo.bench.cluster_report import plot_courses, summarise, verdicts
from nasbo.bench.spec import parse_method
from nasbo.errors import NasboError
from nasbo.history import Trial, config_key
from nasbo.loop import run_loop
from nasbo.search import Search
from nasbo.space import load_space
from nasbo.testing import SPACES
from tests.bench.tiny import noisy_problem, plain_problem, pool_problem

NEARBY = parse_method("tests.bench.tiny:Nearby")
RANDOM = parse_method("random")
SMALL = Cluster(workers=4, trials=24, suggestion_s=2.0, durations=Durations(mean_s=60.0))


def course(schedule: str = "async", **changes: object) -> Course:
    return simulate(noisy_problem(), NEARBY, replace(SMALL, schedule=schedule, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("schedule", ["round", "async"])
def test_one_seed_one_course(schedule: str) -> None:
    first, second = course(schedule), course(schedule)
    assert first == second
    assert first.n_trials == 24
    assert course(schedule, seed=1) != first


@pytest.mark.parametrize("schedule", ["round", "async"])
def test_every_worker_second_is_accounted_for(schedule: str) -> None:
    found = course(schedule)
    until = found.busy_s + found.thinking_s + found.waiting_s
    assert until == pytest.approx(4 * found.handed_out_s)
    durations, problem = SMALL.durations, noisy_problem()
    trials = Simulation(problem, NEARBY, replace(SMALL, schedule=schedule))
    trials.run()
    total = sum(durations.of(trial, problem.space) for trial in trials._search.history.trials)
    assert found.all_busy_s == pytest.approx(total)
    assert found.end_s >= total / 4


def test_free_decisions_keep_async_workers_busy_and_slow_ones_do_not() -> None:
    free, dear = course(suggestion_s=0.0), course(suggestion_s=30.0)
    assert free.busy_share == pytest.approx(1.0)
    assert free.thinking_s == 0.0
    assert dear.busy_share < 0.8
    assert dear.waiting_s == 0.0
    assert dear.end_s > free.end_s
    assert {seconds for _, _, seconds in dear.decisions} == {30.0}


def test_rounds_wait_for_their_slowest_trial() -> None:
    slow, fast = course("round"), course("async")
    assert slow.waiting_s > slow.thinking_s > 0
    assert fast.waiting_s == 0.0
    assert fast.busy_share > slow.busy_share
    assert fast.end_s < slow.end_s


def test_a_round_on_the_cluster_is_a_round_of_the_loop() -> None:
    """With as many workers as subspaces, round mode decides the same as the plain loop."""
    problem, cluster = plain_problem(), replace(SMALL, schedule="round")
    simulation = Simulation(problem, NEARBY, cluster)
    simulation.run()
    search = Search(problem.space, NEARBY.method, seed=0)
    run_loop(search, lambda config: problem.evaluate(config, np.random.default_rng()), 24)
    there = [trial.config for trial in simulation._search.history.trials]
    assert there == [trial.config for trial in search.trials]


def test_a_decision_does_not_see_what_ends_while_it_is_made() -> None:
    simulation = Simulation(plain_problem(), NEARBY, replace(SMALL, suggestion_s=500.0))
    simulation.run()
    history = simulation._search.history
    assert any(round_.unseen for round_ in history.rounds[1:])
    starts = {round_.number: at for round_, (at, _, _) in zip(
        history.rounds, simulation.course.decisions, strict=True)}  # fmt: skip
    assert sorted(starts.values()) == list(starts.values())


def test_measured_cost_is_charged() -> None:
    found = course(suggestion_s=None)
    assert all(seconds >= 0 for _, _, seconds in found.decisions)
    assert sum(seconds for _, _, seconds in found.decisions) > 0


def test_a_thousand_workers() -> None:
    cluster = Cluster(1000, 1200, "async", suggestion_s=0.01)
    found = simulate(plain_problem(), RANDOM, cluster)
    assert found.n_trials == 1200
    assert found.busy_share > 0.99


def test_a_space_that_is_used_up_ends_the_simulation() -> None:
    from tests.bench.tiny import finite_problem

    for schedule in ("round", "async"):
        found = simulate(finite_problem(), RANDOM, Cluster(3, 50, schedule, suggestion_s=1.0))
        assert found.n_trials == 5


def test_a_pool_is_searched_by_its_configs() -> None:
    found = Simulation(pool_problem(), RANDOM, Cluster(3, 50, "async", suggestion_s=1.0))
    assert found.run().n_trials == 30
    keys = {config_key(trial.config) for trial in found._search.history.trials}
    assert len(keys) == 30


def some_trials(n: int) -> list[Trial]:
    space = load_space(SPACES["flat"])
    rng = np.random.default_rng(0)
    return [Trial(at, space.sample(rng), 0, "model") for at in range(n)]


@pytest.mark.parametrize(("tail", "shape"), [("lognormal", 1.0), ("pareto", 3.0)])
def test_durations_have_their_mean_and_a_heavy_tail(tail: str, shape: float) -> None:
    space = load_space(SPACES["flat"])
    durations = Durations(100.0, tail, shape)
    drawn = np.array([durations.of(trial, space) for trial in some_trials(4000)])
    assert drawn.mean() == pytest.approx(100.0, rel=0.1)
    assert drawn.max() > 6 * np.median(drawn)
    assert drawn.min() > 0


def test_durations_may_follow_the_config() -> None:
    space, trials = load_space(SPACES["flat"]), some_trials(500)
    sizes = [float(space.subspace(0).encode(trial.config).mean()) for trial in trials]
    logs = {
        rho: np.log([Durations(correlation=rho).of(trial, space) for trial in trials])
        for rho in (0.0, 0.9)
    }
    assert abs(np.corrcoef(sizes, logs[0.0])[0, 1]) < 0.15
    assert np.corrcoef(sizes, logs[0.9])[0, 1] > 0.7


def test_bad_settings_are_refused() -> None:
    with pytest.raises(NasboError, match="tail must be one of lognormal, pareto"):
        Durations(tail="flat")
    with pytest.raises(NasboError, match="shape above its least"):
        Durations(tail="pareto", shape=1.0)
    with pytest.raises(NasboError, match="-1 <= correlation <= 1"):
        Durations(correlation=2.0)
    with pytest.raises(NasboError, match="schedule must be one of round, async"):
        Cluster(schedule="both")
    with pytest.raises(NasboError, match="workers >= 1"):
        Cluster(workers=0)


def test_summary_compares_both_schedules_at_the_same_times(tmp_path: Path) -> None:
    cluster = replace(SMALL, workers=2)
    fast = Course(replace(cluster, schedule="async"), [(10.0, 3.0), (50.0, 1.0)], [(0.0, 2, 1.0)])
    fast.end_s, fast.busy_s, fast.thinking_s, fast.all_busy_s = 100.0, 97.0, 3.0, 100.0
    slow = Course(replace(cluster, schedule="round"), [(20.0, 2.0)], [(0.0, 2, 1.0)])
    slow.end_s, slow.busy_s, slow.waiting_s, slow.all_busy_s = 200.0, 40.0, 60.0, 200.0
    fast.n_trials = slow.n_trials = 4
    found = summarise([fast, slow])
    assert found["horizon_s"] == 100.0
    assert found["schedules"]["async"]["busy_share"] == pytest.approx(0.97)
    assert found["schedules"]["async"]["busy_share_to_the_end"] == pytest.approx(0.5)
    assert found["schedules"]["round"]["waiting_share"] == pytest.approx(0.6)
    assert found["schedules"]["async"]["best"] == {"25%": 3.0, "50%": 1.0, "75%": 1.0, "100%": 1.0}
    assert found["schedules"]["round"]["best"]["25%"] == 2.0
    # Of 40 times up to 100 s, 4 to 7 and 20 to 40 are better, and 1 to 3 equal: nothing yet.
    versus = found["async_against_round"]
    assert versus["better"] == pytest.approx((4 + 21) / 40)
    assert versus["equal"] == pytest.approx(3 / 40)
    assert versus["worse"] == pytest.approx(12 / 40)
    lines = verdicts(found)
    assert lines[0] == "async: workers are 97.0% busy while there is work"
    assert "60.0% to waiting for the other trials of a round" in lines[1]
    assert plot_courses([fast, slow], "t", tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert fast.best_at(5.0) == math.inf
