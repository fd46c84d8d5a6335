"""A small function with one good value of each kind."""

from __future__ import annotations

import numpy as np

from nasbo.search import Search

SPACE = {"x": {"type": "float", "range": [0, 1]}, "c": {"type": "choice", "range": ["a", None]}}


def check_good_values_are_asked_for(search: Search) -> None:
    """After twenty of forty trials most configs lie near the best place."""
    for _ in range(40):
        (trial,) = search.ask(1)
        penalty = 0.0 if trial.config["c"] is None else 1.0
        search.tell(trial, (trial.config["x"] - 0.2) ** 2 + penalty)
    late = search.trials[20:]
    assert sum(trial.config["c"] is None for trial in late) > 14
    assert np.median([abs(trial.config["x"] - 0.2) for trial in late]) < 0.2
