"""A history comes in; which of its best configs are to be trained again goes out."""

from __future__ import annotations

from collections import Counter

from nasbo.history import Trial, View
from nasbo.search.rungs import due_promotions, room
from nasbo.search.stopping import TO_THE_END, StoppingRule


def due_repeats(history: View) -> list[Trial]:
    """Trials of the best configs to be repeated now, each as often as it stands in the list.

    The best are those of the best means, or estimates where the method has found noise, so a config
    that was lucky once makes room for the next.
    Results from elsewhere and those taken over from the same network are not repeated; a repeat
    that fails is not made up for.
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
    """Whether all trials of the budget have ended, and neither a repeat nor a paused run is due.

    A space that had no config left within that budget needs no more trials. With rungs the budget
    is used when it pays neither a new config nor a promotion.
    """
    if history.open_runs:
        return False
    is_used_up = history.is_exhausted and budget <= (history.budget or budget)
    if not is_used_up and room(history, budget) > 0:
        return False
    promotions = due_promotions(history, budget, is_ending=True)
    return not (promotions or due_repeats(history) or stopping.due(history))
