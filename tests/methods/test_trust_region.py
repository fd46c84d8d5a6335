"""Trust regions: growth, shrinkage, restarts, and the configs inside."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from nasbo.methods.casmopolitan import Casmopolitan
from nasbo.methods.trust_region import Rules, Run, TrustRegion, count_choices, replay
from nasbo.search import Search
from nasbo.space import Config, Space, Subspace, load_space
from nasbo.space.neighbours import values_of
from nasbo.testing import SPACES

RULES = Rules(n_choices=10, failure_tolerance=4, n_start=2)


def test_it_begins_with_the_authors_sizes() -> None:
    (run,) = replay([], Rules(n_choices=50))
    assert (run.length, run.radius) == (0.8, 20)
    (run,) = replay([], Rules(n_choices=7))
    assert run.radius == 7


def test_three_successes_in_a_row_widen_it() -> None:
    (run,) = replay([0.0, 0.0, 1.0, 2.0, 3.0], RULES)
    assert run.length == pytest.approx(1.2)
    assert run.radius == 10
    (run,) = replay([0.0, 0.0, 1.0, 2.0, 0.0, 3.0, 4.0], RULES)
    assert run.length == 0.8
    (run,) = replay([float(n) for n in range(30)], RULES)
    assert run.length == 1.6


def test_failures_in_a_row_shrink_it() -> None:
    (run,) = replay([5.0, 5.0, *[0.0] * 4], RULES)
    assert run.length == pytest.approx(0.8 / 1.5)
    assert run.radius == 6
    (run,) = replay([5.0, 5.0, *[0.0] * 3, 6.0, *[0.0] * 3], RULES)
    assert run.length == 0.8


def test_an_improvement_within_the_margin_is_a_failure() -> None:
    (run,) = replay([10.0, 10.0, 10.005], RULES)
    assert run.failures == 1
    assert run.best == 10.005


def test_it_restarts_when_it_is_too_small() -> None:
    n = 2 + 4 * 6  # 10, 6, 4, 2, 1, 0: five times; one more would start the count again
    runs = replay([1.0, 1.0, *[0.0] * n], RULES)
    assert len(runs) == 2
    assert runs[0].rows == tuple(range(22))
    assert (runs[1].rows[0], runs[1].radius) == (22, 10)


def test_rest_of_a_batch_belongs_to_the_run_that_suggested_it() -> None:
    scores = [1.0, 1.0, *[0.0] * 20, 3.0, 2.0]
    runs = replay(scores, RULES, [None, None, *[0] * 22])
    assert len(runs) == 2
    assert runs[0].rows == tuple(range(24))
    assert runs[0].best == 3.0
    assert runs[1].rows == ()
    runs = replay([*scores, 5.0], RULES, [None, None, *[0] * 22, 1])
    assert runs[1].rows == (24,)
    assert runs[1].best == 5.0


def test_a_config_of_the_next_run_ends_the_present_one() -> None:
    runs = replay([1.0, 1.0, 0.0, 5.0, 2.0], RULES, [None, None, 0, 1, 0])
    assert [run.rows for run in runs] == [(0, 1, 2, 4), (3,)]
    assert (runs[1].length, runs[1].radius) == (0.8, 10)


@pytest.mark.parametrize("batch", [1, 4])
def test_a_region_that_is_used_up_gives_way_to_the_next_run(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With at most one of two choices changed it has 11 configs, which are
    fewer than the patience.
    """
    near = partial(Rules, radius_start=1)
    monkeypatch.setattr("nasbo.methods.casmopolitan.Rules", near)
    levels = {"type": "choice", "range": list(range(6))}
    search = Search({"a": levels, "b": levels}, method="casmopolitan")
    for trial in search.ask(4):
        search.tell(trial, 1.0 + trial.config["a"] + trial.config["b"])
    while trials := search.ask(batch):
        assert {trial.source for trial in trials} == {"model"}
        for trial in trials:
            search.tell(trial, 1.0 + trial.config["a"] + trial.config["b"])
    assert len(search.trials) == 36
    runs = [trial.info["run"] for trial in search.trials[4:]]
    assert runs == sorted(runs)
    assert runs[-1] >= 2


def test_structural_integers_are_choices_however_long() -> None:
    x = {"type": "float", "range": [0, 1]}
    op = {"type": "choice", "range": ["a", "b"]}
    only = {"type": "choice", "range": ["a"]}
    n = {"type": "int", "range": [1, 31], "submodule": {"u": x}}
    space = {"n": n, "op": op, "only": only, "width": {"type": "int", "range": [1, 31]}}
    assert count_choices(load_space(space)) == 2
    assert count_choices(load_space({"n": n | {"submodule": {"op": op}}})) == 1 + 30

    method, rng = Casmopolitan(load_space({"n": n})), np.random.default_rng(0)
    (run,) = replay([], method.rules)
    region = TrustRegion(method.space, {"n": 2, "u": [0.5, 0.5]}, run.length, run.radius)
    assert len({region.sample(rng)["n"] for _ in range(40)}) > 10


def n_changes(home: Subspace, centre: Config, subspace: Subspace, config: Config) -> int:
    """Number of choices and structural values that differ between the config and the centre."""
    before, after = values_of(home, centre), values_of(subspace, config)
    choices = [s for s in home.coordinates if s.is_fixed or not s.parameter.is_ordered]
    keys = [(one.name, one.index) for one in choices]
    return sum(key in after and after[key] != before[key] for key in keys)


def test_samples_lie_inside(any_space: Space) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        centre = any_space.sample(rng)
        home = any_space.subspace_of(centre)
        weights = np.exp(rng.normal(size=len(home.free)))
        region = TrustRegion(any_space, centre, 0.2, 2, weights)
        assert region.region(home).radius == 2
        assert region.region(home).contains(region.rows(10, rng)).all()
        for _ in range(10):
            config = region.sample(rng)
            subspace = any_space.subspace_of(config)
            assert n_changes(home, centre, subspace, config) <= 2
            inside = region.region(subspace)
            assert inside.contains(subspace.encode(config)[None]).all()


def test_long_and_short_sides_are_both_made_use_of() -> None:
    unit = {"type": "float", "range": [0, 1]}
    space = load_space({"x": unit, "y": unit, "n": {"type": "int", "range": [0, 101]}})
    weights, rng = np.array([0.2, 5.0, 5.0]), np.random.default_rng(0)
    region = TrustRegion(space, {"x": 0.5, "y": 0.5, "n": 50}, 0.15, 0, weights)
    drawn = [region.subspace.encode(region.sample(rng)) for _ in range(200)]
    for x in (region.rows(200, rng), np.array(drawn)):
        assert region.region(region.subspace).contains(x).all()
        assert (abs(x[:, 0] - 0.5) <= 0.015 + 1e-9).all()
        assert (abs(x[:, 1:] - 0.5).max(0) > 0.35).all()
        assert (abs(x[:, 1:] - 0.5) <= 0.375 + 1e-9).all()


def test_a_structural_change_uses_up_a_change() -> None:
    space = load_space(SPACES["nested"])
    region = TrustRegion(space, {"top": "right", "gamma": 0.5, "flag": True}, 0.2, 1)
    left = space.subspace_of({"top": "left", "turn": 0, "gamma": 0.1, "flag": False})
    inside = region.region(left)
    assert inside.radius == 0
    names = [one.name for one in left.free]
    gamma, flag = names.index("gamma"), names.index("flag")
    assert inside.low[gamma] == pytest.approx(0.4)
    row = np.zeros((2, 2))
    row[:, gamma] = 0.5
    row[:, flag] = [0.0, 1.0]
    assert inside.contains(row).tolist() == [True, False]


@pytest.mark.parametrize("batch", [1, 4])
def test_every_run_begins_where_the_global_gp_says(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    restarts: list[int] = []
    restart = Casmopolitan._restart

    def counted(self: Casmopolitan, runs: list[Run], *given: Any) -> Config | None:
        restarts.append(len(runs) - 1)
        return restart(self, runs, *given)

    monkeypatch.setattr(Casmopolitan, "_restart", counted)
    space = {"x": {"type": "float", "range": [0, 1]}, "c": {"type": "choice", "range": ["a", "b"]}}
    search = Search(space, method="casmopolitan", failure_tolerance=1)
    while len(search.trials) < 36:
        for trial in search.ask(batch):
            search.tell(trial, 1.0)
    begun = {trial.info.get("run", 0) for trial in search.trials}
    assert len(begun) > 2
    assert restarts == sorted(begun - {0})


def test_searches_restart_elsewhere() -> None:
    """Without patience, runs end, and a new one begins where the global GP suggests."""
    space = {"x": {"type": "float", "range": [0, 1]}, "c": {"type": "choice", "range": ["a", "b"]}}
    search = Search(space, method="casmopolitan", failure_tolerance=1)
    for trial in search.ask(2):
        search.tell(trial, trial.config["x"])
    for _ in range(30):
        (trial,) = search.ask(1)
        search.tell(trial, 5.0)
    runs = [trial.info["run"] for trial in search.trials[2:]]
    assert runs == sorted(runs)
    assert runs[-1] >= 1
    assert all(trial.source == "model" for trial in search.trials[2:])
