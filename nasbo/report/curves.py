"""Learning curves of a sweep as a report shows them: cleaned, and of a bounded size."""

from __future__ import annotations

from collections.abc import Sequence

from nasbo.history import View

Curve = Sequence[tuple[int, float]]

MAX_POINTS = 300_000
"""Of all curves together."""
MAX_LENGTH, MIN_LENGTH = 200, 20
"""No curve is shown with more points than the first, nor thinned to fewer than the second."""


def shown_curves(history: View) -> dict[int, Curve]:
    """The curves of trials that have told a value, by trial number."""
    curves = {trial.id: clean_curve(trial.curve) for trial in history.trials}
    curves = {number: curve for number, curve in curves.items() if curve}
    most = min(MAX_LENGTH, max(MIN_LENGTH, MAX_POINTS // max(len(curves), 1)))
    return {number: thin_curve(curve, most) for number, curve in curves.items()}


def thin_curve(curve: Curve, most: int) -> Curve:
    """A curve with at most so many points: the first, the last and evenly between them."""
    if len(curve) <= most:
        return curve
    return [curve[round(at * (len(curve) - 1) / (most - 1))] for at in range(most)]


def clean_curve(curve: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """A curve without what a trial had reported before it went back to an earlier step."""
    kept: list[tuple[int, float]] = []
    for step, value in curve:
        while kept and kept[-1][0] >= step:
            kept.pop()
        kept.append((step, value))
    return kept
