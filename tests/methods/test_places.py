"""Allocation of the places of an attnbo round: one per subspace, or by promise."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pytest

from nasbo.acquisition import Avoided, ByPromise, Chooser, LogEI
from nasbo.errors import NasboError
from nasbo.history import config_key
from nasbo.methods.attnbo import PATIENCE, AttnBO
from nasbo.search import Search
from nasbo.space import Config, Space, Subspace, load_space
from nasbo.testing import MethodContract
from nasbo.testing.acquisitions import fitted, sampled
from tests.acquisition.scenes import Array, never

N_SUBSPACES = 4
PENALTY = 20.0
"""Offset of all subspaces but the first: worse than any effect of a parameter."""


def one_sided(space: Space, config: Config) -> float:
    """A value to minimise: a valley in every subspace, by far the deepest in the first one."""
    subspace = space.subspace_of(config)
    distance = subspace.encode(config) - 0.3
    return float(distance @ distance) + PENALTY * (subspace.index > 0)


def after_rounds(n_rounds: int, seed: int = 0, **options: str) -> Search:
    """The design and rounds of four; no trial is running."""
    search = Search("simulation", mode="min", seed=seed, **options)
    for size in (2 * N_SUBSPACES, *[4] * n_rounds):
        for trial in search.ask(size):
            search.tell(trial, one_sided(search.space, trial.config))
    return search


def places(search: Search) -> list[list[int]]:
    """Subspaces of the trials of each round after the design."""
    trials = search.trials[2 * N_SUBSPACES :]
    return [[t.subspace for t in trials[at : at + 4]] for at in range(0, len(trials), 4)]


def test_bad_places_are_refused() -> None:
    with pytest.raises(NasboError, match="places must be one of equal, promise, got 'all'"):
        AttnBO(load_space("simulation"), places="all")


def test_places_are_equal_unless_told_otherwise() -> None:
    usual, equal = after_rounds(2), after_rounds(2, places="equal")
    assert [t.config for t in usual.trials] == [t.config for t in equal.trials]
    assert [sorted(one) for one in places(usual)] == [[0, 1, 2, 3]] * 2
    assert "places" not in usual.trials[-1].info


@pytest.mark.parametrize("seed", [0, 1])
def test_a_promising_subspace_gets_several_places(seed: int) -> None:
    search = after_rounds(1, seed, places="promise")
    assert Counter(places(search)[0])[0] > 1
    assert {trial.info["places"] for trial in search.trials[8:]} == {"promise"}


def test_no_subspace_is_starved() -> None:
    search = after_rounds(10, places="promise")
    taken = [trial.subspace for trial in search.trials]
    assert taken[8:].count(0) > len(taken[8:]) / 2
    # Those that are owed a place come in with the round in which the patience ends, or the next.
    window = PATIENCE * N_SUBSPACES + 2 * 4
    for end in range(window, len(taken) + 1):
        assert set(taken[end - window : end]) == {0, 1, 2, 3}
    keys = {config_key(trial.config) for trial in search.trials}
    assert len(keys) == len(taken)
    assert {trial.source for trial in search.trials} == {"design", "model"}


def by_promise(n: int, owed: list[int], closed: tuple[int, ...] = ()) -> list[int]:
    """Subspaces of a batch on a fitted model; closed subspaces have no untried config."""
    space = load_space("simulation")
    data = sampled(space, 12)
    model = fitted(data)

    def is_taken(subspace: Subspace, x: Array) -> bool:
        return subspace.index in closed

    chooser = ByPromise(space, data, np.random.default_rng(0), Avoided(is_taken), owed=owed)
    found = chooser.choose(LogEI().prepare(model, data), model, n)
    assert len({config_key(one.config) for one in found}) == n
    return [one.subspace.index for one in found]


def test_owed_places_come_last_and_do_not_count_twice() -> None:
    plain = by_promise(3, [])
    missing = [index for index in range(N_SUBSPACES) if index not in plain]
    assert missing
    assert by_promise(3, [plain[0]]) == plain
    assert by_promise(3, missing[:1]) == [*plain[:2], missing[0]]
    assert len(set(by_promise(4, [0, 1, 2, 3]))) == N_SUBSPACES


def test_an_owed_subspace_without_untried_configs_leaves_its_place_to_others() -> None:
    plain = by_promise(3, [])
    missing = next(index for index in range(N_SUBSPACES) if index not in plain)
    assert by_promise(3, [missing], closed=(missing,)) == plain


def test_the_first_place_is_that_of_equal_places() -> None:
    space = load_space("simulation")
    data = sampled(space, 12)
    model = fitted(data)
    acquisition = LogEI().prepare(model, data)
    first = [
        kind(space, data, np.random.default_rng(0), Avoided(never)).choose(acquisition, model, 2)[0]
        for kind in (Chooser, ByPromise)
    ]
    assert first[0].config == first[1].config
    assert first[0].score == first[1].score


class TestContract(MethodContract):
    method = "attnbo"
    options: ClassVar[dict[str, Any]] = {"places": "promise"}
