"""Events of a round: that it was decided, and its trials."""

from __future__ import annotations

from collections.abc import Sequence

from nasbo.feasibility import failing_regions
from nasbo.history import History, json_safe
from nasbo.history import events as ev
from nasbo.history.estimates import take_estimates
from nasbo.methods import Suggestion


def round_events(
    history: History,
    suggestions: Sequence[Suggestion],
    seconds: float,
    unseen: Sequence[int] | None = None,
) -> tuple[ev.RoundOpened, list[ev.Suggested]]:
    """A decision as events.

    Args:
        history: before the round.
        suggestions: the decision.
        seconds: its duration.
        unseen: runs whose results it did not see; by default those open now.
    """
    number, first = len(history.rounds), history.n_runs
    estimates, infos = take_estimates([json_safe(one.info) for one in suggestions])
    if any(trial.partial for trial in history.trials):
        estimates = None  # values at different steps differ by more than noise
    opened = ev.RoundOpened(
        round=number,
        size=len(suggestions),
        unseen=tuple(history.open_numbers if unseen is None else unseen),
        seconds=round(seconds, 4),
        set_aside=tuple(map(str, failing_regions(history))),
        estimates=estimates,
    )
    new = [
        ev.Suggested(
            trial=first + index,
            round=number,
            source=suggestion.source,
            subspace=history.space.subspace_of(suggestion.config).index,
            config=suggestion.config,
            info=info,
        )
        for index, (suggestion, info) in enumerate(zip(suggestions, infos, strict=True))
    ]
    return opened, new
