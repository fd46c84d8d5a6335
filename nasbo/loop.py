"""The whole search in one process: read this first.

A search is a loop over rounds. A round is decided as a whole from the results so far: first the
initial design (two configs in every subspace), then, round after round, the config of highest
expected improvement in each subspace. The journal holds every step, so the loop can be stopped
anywhere and continued. ``nasbo.tune`` runs the same loop with the trials on a Ray cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nasbo.history import History, Trial
from nasbo.methods.base import MAX_DESIGN_SUBSPACES, design_size, open_places
from nasbo.search import Search
from nasbo.space import Config, Space


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
    while (missing := n_trials - search.history.n_ended) > 0:
        size = search.n_returned or next_round_size(search.history, batch)
        trials = search.ask(min(size, missing))
        if not trials:
            break  # every config of the space has been tried
        for trial in trials:
            run_trial(search, trial, objective)
            if on_end:
                on_end(search.history.trial(trial.id))
    return search.history


def run_trial(search: Search, trial: Trial, objective: Callable[[Config], float]) -> None:
    """Evaluate one trial and tell the search how it ended."""
    try:
        value = objective(trial.config)
    except Exception as error:
        search.tell(trial, error="crashed", message=f"{type(error).__name__}: {error}")
    else:
        search.tell(trial, value)


def next_round_size(history: History, batch: int | None = None, slots: int = 1) -> int:
    """How many configs the next round has.

    The design is one round. After it a round takes one config per subspace, or ``batch``; more
    when there are more slots than subspaces; as many as slots where subspaces are too many to
    visit each one.
    """
    space = history.space
    if (left := design_left(history)) > 0:
        return left
    if batch is not None:
        return batch
    return slots if is_crowded(space) else max(space.n_subspaces, slots)


def design_left(history: History) -> int:
    """How many configs of the initial design have not been handed out."""
    space, counts = history.space, history.design_counts()
    if space.n_subspaces > MAX_DESIGN_SUBSPACES:
        return max(design_size(space) - sum(counts.values()), 0)
    return len(open_places(space, counts))


def is_crowded(space: Space) -> bool:
    """Whether the space has too many subspaces for one config in each per round."""
    return not space.is_listable or space.n_subspaces > MAX_ROUND_SUBSPACES


MAX_ROUND_SUBSPACES = 64
