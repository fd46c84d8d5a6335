"""Repeats of the best configs that are due."""

from __future__ import annotations

from collections import Counter

from nasbo.history import Trial, View
from nasbo.search.rungs import due_promotions, room
from nasbo.search.stopping import TO_THE_END, StoppingRule


def due_repeats(history: View) -> list[Trial]:
    """Trials of the best configs to repeat now; a trial occurs once per repeat.

    They are ranked by their means, or by estimates if the method has found noise, so that a config
    with one lucky value is replaced by the next. Results from elsewhere and results of twins are
    not repeated. A failed repeat is not replaced.
    """
    if not history.repeating.repeats:
        return []
    counts = Counter(run.trial for run in history.repeats)
    own = [
        trial
        for trial in history.ranked()
        if trial.state == "finished" and trial.twin is None and trial.source != "observed"
    ]
    wanted, top = history.repeating.repeats, history.repeating.top
    return [trial for trial in own[:top] for _ in range(wanted - counts[trial.id])]


def is_complete(history: View, budget: int, stopping: StoppingRule = TO_THE_END) -> bool:
    """Whether all trials of the budget have ended, and no repeat or paused run is due.

    An exhausted space needs no more trials within the same budget. With rungs, the budget is used
    when it allows neither a new config nor a promotion.
    """
    if history.open_runs:
        return False
    is_used_up = history.is_exhausted and budget <= (history.budget or budget)
    if not is_used_up and room(history, budget) > 0:
        return False
    promotions = due_promotions(history, budget, is_ending=True)
    return not (promotions or due_repeats(history) or stopping.due(history))
