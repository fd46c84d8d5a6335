"""Method under test, and searches with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nasbo.history import config_key
from nasbo.methods import Method, design_size
from nasbo.search import Search
from nasbo.space import Config, Space, load_space
from nasbo.testing.spaces import objective


@dataclass(frozen=True)
class MethodCase:
    """A method under test.

    Attributes:
        method: its class, which must be at the top level of an importable module, or its name: of
            the registry, of an entry point, or ``module:Class``.
        options: its settings.
        is_blind: whether its suggestions do not depend on results, as in random search.
    """

    method: type[Method] | str
    options: Mapping[str, Any] = field(default_factory=dict)
    is_blind: bool = False

    @property
    def name(self) -> str:
        """The name by which ``Search`` and ``make_method`` find it."""
        if isinstance(self.method, str):
            return self.method
        return f"{self.method.__module__}:{self.method.__qualname__}"

    def search(self, space: Space, seed: int = 0, **settings: Any) -> Search:
        """A new search with the method; ``settings`` are further arguments of ``Search``."""
        return Search(space, self.name, seed=seed, **settings, **self.options)


def after_design(case: MethodCase, space: Space, seed: int = 0) -> Search:
    """A search after its design, with one config failed and one still running."""
    search = case.search(space, seed)
    trials = search.ask(design_size(space))
    rng = np.random.default_rng(seed)
    for config in (space.sample(rng) for _ in range(4 if space.n_subspaces == 1 else 0)):
        if config not in [trial.config for trial in search.trials]:
            search.observe(config, objective(space, config))
    for trial in trials[1:-1]:
        search.tell(trial, objective(space, trial.config))
    search.tell(trials[0], float("nan"))
    return search


def check_configs(search: Search) -> None:
    """Assert that all configs of a search are valid, plain values, and all different."""
    for trial in search.trials:
        assert search.space.canonical(trial.config) == trial.config
        assert json.loads(json.dumps(trial.config)) == trial.config
    keys = [config_key(trial.config) for trial in search.trials]
    assert len(set(keys)) == len(keys)


def suggestions(case: MethodCase, space: Any) -> list[Config]:
    """Configs that a method suggests after the design on a space, given as for ``load_space``."""
    search = after_design(case, load_space(space), seed=2)
    return [trial.config for trial in search.ask(2)]
