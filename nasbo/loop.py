"""Search loop in one process (read this first).

A search is a loop over rounds. A round is decided as a whole from the results so far: first the
initial design (two configs in every subspace), then, in each round, the config of highest expected
improvement in each subspace. The driver (``nasbo/search/driver.py``) decides which run comes next.
The journal records every step, so the loop can be stopped and continued anywhere. On a Ray cluster
(``nasbo.tune``) Tune asks the same driver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nasbo.history import History, Run, Trial
from nasbo.search import Driver, Schedule, Search
from nasbo.space import Config


def run_loop(
    search: Search,
    objective: Callable[[Config], float],
    n_trials: int,
    batch: int | None = None,
    on_end: Callable[[Trial], Any] | None = None,
) -> History:
    """Run a search until ``n_trials`` configs have ended.

    Args:
        search: the space, the method and the journal.
        objective: returns a config's value; an exception ends its trial as ``crashed``.
        n_trials: the budget; each config counts once, however it ends.
        batch: configs per round after the design; by default one per subspace.
        on_end: called with each trial that has ended.
    """
    driver = Driver(search, Schedule(batch=batch, budget=n_trials))
    while isinstance(run := driver.next(slots=1), Run):
        trial = search.history.trial(run.number)
        try:
            value = objective(trial.copy().config)
        except Exception as error:  # a user's function may raise anything
            driver.on_end(run.number, error="crashed", message=f"{type(error).__name__}: {error}")
        else:
            driver.on_end(run.number, value)
        if on_end:
            on_end(search.history.trial(run.number))
    return search.history
