"""The whole search in one process: read this first.

A search is a loop over rounds. A round is decided as a whole from the results so far: first the
initial design (two configs in every subspace), then, round after round, the config of highest
expected improvement in each subspace. The driver (``nasbo/search/driver.py``) says which run comes
next; the journal holds every step, so the loop can be stopped anywhere and continued. On a Ray
cluster (``nasbo.tune``) the same driver is asked, by Tune.
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
        objective: a config's value; whatever it raises ends its trial as ``crashed``.
        n_trials: the budget; each config counts once, however it ends.
        batch: configs per round after the design; default one per subspace.
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
