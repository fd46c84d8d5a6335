"""True values of the configs that a search returns after each trial."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from nasbo.bench.problem import Config, Problem
from nasbo.search import Search

Curve = list[float | None]
RULE = 2
"""Version of the rule by which a search returns a config: part of the cells' keys."""


@dataclass
class Returned:
    """The configs that a user would take if the search stopped after each number of trials.

    The search is asked for its ``best`` at that number of results, with its method's noise
    estimates at the time: a later answer would depend on later results.

    Attributes:
        problem: problem whose truth counts.
        trials: trials that were returned after 0, 1, ... trials after the design; ``None`` if none
            had finished.
        observed: trials with the best value so far, in the same form.
    """

    problem: Problem
    trials: list[int | None] = field(default_factory=list)
    observed: list[int | None] = field(default_factory=list)
    _configs: dict[int, Config] = field(default_factory=dict)
    _truths: dict[int, float] = field(default_factory=dict)

    def ask(self, search: Search) -> None:
        """Record what the search returns now."""
        known = [trial for trial in search.history.trials if trial.value is not None]
        if not known:
            self.trials.append(None)
            self.observed.append(None)
            return
        best = search.best
        # Ties go to the earlier trial, as in the history.
        lucky = min(known, key=lambda trial: (trial.value, trial.id)).copy()
        for trial in (best, lucky):
            self._configs[trial.id] = trial.config
        self.trials.append(best.id)
        self.observed.append(lucky.id)

    def columns(self, scores: Curve, n_design: int) -> dict[str, Any]:
        """Columns for a cell's record.

        Args:
            scores: true values of all trials, ``None`` where unknown.
            n_design: trials of the design.

        Returns:
            ``trials`` that were returned, and true values ``of_returned``, ``of_observed`` (the
            config with the best value) and ``of_tried`` (the best of all; ``None`` if the truth is
            too costly for all), after 0, 1, ... trials after the design.
        """
        tried = None if self.problem.is_truth_costly else _least_so_far(scores, n_design)
        return {
            "trials": self.trials,
            "of_returned": [self._truth(self.trials[at]) for at in self._looked_at],
            "of_observed": [self._truth(self.observed[at]) for at in self._looked_at],
            "of_tried": tried,
        }

    @property
    def _looked_at(self) -> list[int]:
        """For 0, 1, ... trials after the design: the last number at which
        the truth was evaluated.
        """
        times = range(len(self.trials))
        if not self.problem.truth_after:
            return list(times)
        wanted = (0, *self.problem.truth_after)
        return [max(one for one in wanted if one <= time) for time in times]

    def _truth(self, trial: int | None) -> float | None:
        if trial is None:
            return None
        if trial not in self._truths:
            self._truths[trial] = float(self.problem.score(self._configs[trial], math.nan))
        truth = self._truths[trial]
        return truth if math.isfinite(truth) else None


def _least_so_far(scores: Curve, n_design: int) -> Curve:
    curve: Curve = []
    for end in range(n_design, len(scores) + 1):
        curve.append(min((s for s in scores[:end] if s is not None), default=None))
    return curve
