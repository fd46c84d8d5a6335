"""Regularised evolution: tournaments among the population, one change at a time."""

from __future__ import annotations

import numpy as np

from nasbo.methods.evolution import mutate
from nasbo.search import Search
from nasbo.space import Space, load_space
from nasbo.space.neighbours import values_of

from .functions import SMALL, jenatton


def test_first_configs_are_random_then_children_of_the_living() -> None:
    search = Search(SMALL, method="evolution", population=10, tournament=3)
    for _ in range(30):
        (trial,) = search.ask(1)
        search.tell(trial, jenatton(trial.config))
    parents = [trial.info.get("parent") for trial in search.trials]
    assert parents[:10] == [None] * 10
    for number, parent in enumerate(parents[10:], start=10):
        assert parent is not None
        assert number - 10 <= parent < number


def test_a_tournament_of_everybody_takes_the_best_living() -> None:
    search = Search(SMALL, method="evolution", population=8, tournament=8)
    for trial in search.ask(8):
        search.tell(trial, jenatton(trial.config))
    best = min(search.trials, key=lambda trial: trial.value or 0.0)
    assert {trial.info["parent"] for trial in search.ask(5)} == {best.id}


def test_mutations_change_one_parameter(any_space: Space) -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        config = any_space.sample(rng)
        child = mutate(any_space, config, rng)
        assert any_space.canonical(child) == child
        home, there = any_space.subspace_of(config), any_space.subspace_of(child)
        before, after = values_of(home, config), values_of(there, child)
        kept = before.keys() & after.keys()
        changed = [key for key in kept if before[key] != after[key]]
        assert len(changed) == 1
        if home.index != there.index:
            coordinate = next(s for s in home.coordinates if (s.name, s.index) == changed[0])
            assert coordinate.is_fixed


def test_every_parameter_has_its_turn() -> None:
    space = load_space(SMALL)
    rng = np.random.default_rng(0)
    config = {"x1": 0, "r8": 0.5, "x2": 0, "x4": 0.5}
    moved = {"x1": 0, "r8": 0, "x2": 0, "x4": 0}
    for _ in range(400):
        child = mutate(space, config, rng)
        name = next(n for n in config if n in child and child[n] != config[n])
        moved[name] += 1
    assert min(moved.values()) > 60
