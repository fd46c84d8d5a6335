"""Optimiser of acquisitions, and the choice of the next configs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nasbo.acquisition import ACQUISITIONS, Avoided, Chooser, LogEI
from nasbo.acquisition.optimise import Effort, Region, joined, maximise, score_rows
from nasbo.history import config_key
from nasbo.methods.attnbo import AttnBO
from nasbo.space import Subspace, load_space
from nasbo.testing.acquisitions import fitted, sampled
from nasbo.testing.spaces import MIXED, mixed_score

from .scenes import Array, choose


def test_the_best_of_each_subspace_beats_many_random_configs() -> None:
    space = load_space(MIXED)
    data = sampled(space)
    model = fitted(data)
    found = choose(space, "log_ei", 2, data)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert {one.subspace.index for one in found} == {0, 1}
    promise = LogEI().prepare(model, data).under(model)
    for best in found:
        rows = best.subspace.candidates(3000, np.random.default_rng(1))
        (scores,) = score_rows(promise, [(best.subspace, rows)])
        assert best.score >= scores.max() - 1e-3


@pytest.mark.parametrize("name", ["cash", "nas_cifar10", "xgboost"])
def test_found_rows_lie_on_levels(name: str) -> None:
    space = load_space(name)
    found = choose(space, "log_ei", space.n_subspaces, sampled(space, 8))
    assert len({one.subspace.index for one in found}) == space.n_subspaces
    for one in found:
        assert np.allclose(one.x, one.subspace.snap(one.x[None])[0], atol=1e-12)
        assert space.canonical(one.config) == one.config
        assert np.allclose(one.subspace.encode(one.config), one.x, atol=1e-12)


def test_taken_configs_never_come_back_until_none_is_left() -> None:
    below = {"p": {"b": {"type": "int", "range": [0, 4]}}}
    space = load_space({"a": {"type": "choice", "range": ["p", "q"], "submodule": below}})
    data, taken = sampled(space, 4), set[str]()

    def is_taken(subspace: Subspace, x: Array) -> bool:
        return config_key(subspace.decode(x)) in taken

    for _ in range(5):  # 4 configs under p, 1 under q
        key = config_key(choose(space, "log_ei", 1, data, is_taken)[0].config)
        assert key not in taken
        taken.add(key)
    assert not choose(space, "log_ei", 1, data, is_taken)


def test_batch_has_each_subspace_once_then_further_ones() -> None:
    space = load_space("simulation")
    found = choose(space, "log_ei", 6, sampled(space, 10))
    assert sorted(one.subspace.index for one in found[:4]) == [0, 1, 2, 3]
    assert len({config_key(one.config) for one in found}) == 6


def test_near_twins_of_running_configs_are_avoided() -> None:
    space = load_space(MIXED)
    data = sampled(space)
    (best,) = choose(space, "log_ei", 1, data)
    avoided = Avoided(lambda subspace, x: False, [best.subspace], [best.x])
    assert avoided(best.subspace, best.x + 0.01)
    assert not avoided(best.subspace, best.x + 0.03)
    other = avoided.copy()
    other.add(best.subspace, best.x + 0.5)
    assert other(best.subspace, best.x + 0.5)
    assert not avoided(best.subspace, best.x + 0.5)


def test_a_climb_ascends_stays_in_its_region_and_keeps_the_starts() -> None:
    (subspace, _) = load_space(MIXED).subspaces()
    target = subspace.candidates(1, np.random.default_rng(2))[0]

    def near(batches: object) -> torch.Tensor:
        return -(joined(batches) - torch.from_numpy(target)).square().sum(1)  # type: ignore[arg-type]

    starts = subspace.candidates(5, np.random.default_rng(0))
    (pool,) = maximise(near, [(subspace, starts)])
    assert pool.x[0] == pytest.approx(target, abs=1e-4)
    assert (np.diff(pool.scores) <= 0).all()
    assert {tuple(row) for row in starts} <= {tuple(row) for row in pool.x}
    choices = np.flatnonzero(~subspace.is_ordered)
    region = Region(
        np.maximum(starts[0] - 0.2, 0), np.minimum(starts[0] + 0.2, 1), starts[0], choices, 0
    )
    (inside,) = maximise(near, [(subspace, starts[:1])], regions=[region])
    assert region.contains(inside.x).all()
    assert inside.scores[0] > near([(subspace, torch.from_numpy(starts[:1]))]).item()


def test_all_subspaces_go_through_the_same_steps_at_once() -> None:
    space = load_space(MIXED)
    data = sampled(space)
    model = fitted(data)
    promise = LogEI().prepare(model, data).under(model)
    starts = [(s, s.candidates(20, np.random.default_rng(0))) for s in space.subspaces()]
    together = maximise(promise, starts, Effort())
    alone = [maximise(promise, [one], Effort())[0] for one in starts]
    for one, other in zip(together, alone, strict=True):
        assert one.scores[0] == pytest.approx(other.scores[0], abs=0.05)


@pytest.mark.parametrize("acquisition", ["sampled_log_ei", "log_pi", "ucb", "thompson"])
def test_many_subspaces(acquisition: str) -> None:
    space = load_space("nas_cifar10_conditional")
    found = choose(space, acquisition, 3, sampled(space, 15))
    assert len({config_key(one.config) for one in found}) == 3
    assert all(space.canonical(one.config) == one.config for one in found)


def test_default_is_log_ei_and_sampled_where_there_are_many() -> None:
    assert AttnBO(load_space("nas_cifar10")).acquisition == "log_ei"
    assert AttnBO(load_space("nas_cifar10_conditional")).acquisition == "sampled_log_ei"


def test_promising_subspaces_are_better_than_random_ones() -> None:
    space = load_space("nas_cifar10_conditional")
    data, rng = sampled(space, 15), np.random.default_rng(0)
    model = fitted(data)
    promise = ACQUISITIONS["sampled_log_ei"]().prepare(model, data)
    chooser = Chooser(space, data, rng, Avoided(lambda subspace, x: False))
    promising = chooser.visited(promise, model, 6)[:6]
    assert len({subspace.index for subspace in promising}) == 6
    rest = [space.random_subspace(rng) for _ in range(6)]
    means = []
    for subspaces in (promising, rest):
        rows = [(s, s.candidates(50, rng)) for s in subspaces]
        best = [scores.max() for scores in score_rows(promise.under(model), rows)]
        means.append(np.mean(best))
    assert means[0] > means[1]


def test_thompson_follows_the_posterior() -> None:
    space = load_space(MIXED)
    data = sampled(space, 40)
    found = choose(space, "thompson", 20, data)
    assert len(found) == 20
    assert np.mean([mixed_score(one.config) for one in found]) > data.scores.mean()
