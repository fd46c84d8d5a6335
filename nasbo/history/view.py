"""Read-only views of a history, for methods, displays and reports."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from nasbo.history.estimates import probability_of_best
from nasbo.history.events import Settings
from nasbo.history.front import Reference
from nasbo.history.objectives import By, Mode, Objectives
from nasbo.history.past import Past
from nasbo.history.records import Repeating, Round, Run, Trial, count_retries
from nasbo.history.rungs import Rungs
from nasbo.space import Space, Subspace

Curves = tuple[list[float], list[tuple[int, float, float]]]
"""Fraction of a full training of each row, and (row, fraction, score) of
the rows' earlier values."""


class View:
    """State of a search: trials in the order of their numbers, and quantities derived from them.

    Attributes:
        space: the search space.
        objectives: the objectives.
        settings: the first event; ``None`` before it.
        trials: one per config.
        past: other sweeps whose results are included.
        rounds: groups of trials that were decided together.
        budget: total number of configs; ``None`` if unknown.
        is_exhausted: whether the method had no config left.
        repeating: how often the best configs are trained again.
        rungs: steps at which trials pause and are compared; ``None`` if all are trained in full.
        reference: reference point of several objectives; ``None`` before the design has ended.
        retired: numbers of the paused runs that have lost their checkpoint.
        gaps: (end, start) of drivers: times without one, between an interruption and a resume.
        last_time: time of the last event.
    """

    space: Space
    objectives: Objectives
    settings: Settings | None
    rounds: Sequence[Round]
    budget: int | None
    is_exhausted: bool
    repeating: Repeating
    rungs: Rungs | None
    reference: Reference | None
    retired: set[int]
    gaps: Sequence[tuple[float, float]]
    last_time: float
    trials: Sequence[Trial]
    past: tuple[Past, ...]

    @property
    def notes(self) -> Mapping[str, Any]:
        """The sweep's own values in the settings."""
        return {} if self.settings is None else self.settings.notes

    # Trials and runs

    def trial(self, number: int) -> Trial:
        """The trial with a number, its own or that of one of its runs."""
        return self._by_run[number]

    @cached_property
    def _by_run(self) -> dict[int, Trial]:
        """Trials by run number, for views that do not change."""
        return {run.number: trial for trial in self.trials for run in trial.runs}

    def run(self, number: int) -> Run:
        """The run with a number."""
        return next(run for run in self.trial(number).runs if run.number == number)

    @property
    def suggested(self) -> list[Trial]:
        """Trials of the search itself, without results from elsewhere."""
        return [trial for trial in self.trials if trial.source != "observed"]

    @property
    def runs(self) -> list[Run]:
        """All runs of suggested trials, in the order of their numbers."""
        runs = (run for trial in self.suggested for run in trial.runs)
        return sorted(runs, key=lambda run: run.number)

    @property
    def repeats(self) -> list[Run]:
        """Runs beyond the first one of each trial, with other seeds."""
        return [run for run in self.runs if run.is_repeat]

    @property
    def open_runs(self) -> list[Run]:
        """Runs that have not ended."""
        return [run for run in self.runs if run.is_open]

    def subspace(self, trial: Trial) -> Subspace:
        return self.space.subspace(trial.subspace)

    # Counts

    @property
    def n_suggested(self) -> int:
        return len(self.suggested)

    @property
    def n_ended(self) -> int:
        """Number of suggested trials that have ended or paused: these count towards a budget."""
        return sum(not trial.is_open for trial in self.suggested)

    def cost(self, trial: Trial) -> int:
        """Steps of the budget that a trial has used, including those up to its present target.

        A trial that needed no training (refused, or a twin) counts as one at the
        first rung. Requires rungs.
        """
        assert self.rungs is not None
        run = trial.first
        reached = (run.until or self.rungs.full) if run.is_open and run.attempts else run.step
        return max(run.n_repeated_steps + reached, self.rungs.lower[0])

    @property
    def spent(self) -> float:
        """Used budget: trials or, with rungs, steps in units of full trainings."""
        if self.rungs is None:
            return self.n_ended
        return sum(self.cost(trial) for trial in self.suggested) / self.rungs.full

    def design_counts(self) -> Counter[int]:
        """Configs per subspace that count towards the initial design.

        A config that replaced one of a subspace without allowed configs counts for that subspace.
        """
        counted = (t for t in self.trials if t.source in ("design", "observed"))
        return Counter(t.info.get("instead_of", t.subspace) for t in counted)

    def state_counts(self) -> Counter[str]:
        return Counter(trial.state for trial in self.suggested)

    def cause_counts(self) -> Counter[str]:
        """Failed trials by cause; repeats are not included."""
        return Counter(str(trial.cause) for trial in self.suggested if trial.state == "failed")

    def retry_counts(self) -> Counter[str]:
        """How often runs were started again, by cause."""
        return count_retries(tuple(self.runs))

    # Ranking

    @property
    def mode(self) -> Mode:
        return self.objectives.first.mode

    def score(self, value: float) -> float:
        """A value as a score, larger is better."""
        return self.objectives.first.score(value)

    def ranked(self, by: By = "estimate") -> list[Trial]:
        """All trials with values, best first, as in ``Objectives.ranked``."""
        return self.objectives.ranked(self.trials, by)

    @property
    def best(self) -> Trial | None:
        """The trial that is expected to be the best among the finished ones.

        Without noise it is the one with the best value.
        """
        return next(iter(self.ranked()), None)

    @property
    def front(self) -> list[Trial]:
        """The trials that no other one dominates, best value of the first objective first."""
        return self.objectives.front(self.trials)

    @property
    def hypervolume(self) -> float | None:
        """Hypervolume of the front; ``None`` before there is a reference point."""
        if self.reference is None:
            return None
        return self.objectives.hypervolume(self._ended(), self.reference)

    @property
    def certainty(self) -> float | None:
        """Probability that the best trial is truly the best of those with estimates.

        Estimates are treated as independent. ``None`` without estimates.
        """
        found = [trial.estimate for trial in self.ranked() if trial.estimate is not None]
        if not found:
            return None
        return probability_of_best([self.score(m) for m, _ in found], [sd for _, sd in found])

    def best_per_subspace(self) -> list[Trial]:
        """The best trial of each subspace with results, best first."""
        found: dict[int, Trial] = {}
        for trial in self.ranked():
            found.setdefault(trial.subspace, trial)
        return list(found.values())

    @property
    def has_own_result(self) -> bool:
        """Whether a trial of this search has a value; results from elsewhere do not count."""
        return any(trial.value is not None for trial in self.suggested)

    def best_so_far(self) -> list[float]:
        """Best value after each ended trial, in the order of the endings."""
        curve: list[float] = []
        best: float | None = None
        for trial in self._ended():
            is_known = trial.value is not None and trial.is_comparable
            if is_known and self.objectives.is_better(trial.value or 0.0, best):
                best = trial.value
            curve.append(math.nan if best is None else best)
        return curve

    def hypervolume_so_far(self) -> list[float]:
        """Hypervolume after each ended trial, in the order of the endings; empty before there is a
        reference point.
        """
        if self.reference is None:
            return []
        return self.objectives.hypervolumes(self._ended(), self.reference)

    def _ended(self) -> list[Trial]:
        """The ended trials in the order of their endings."""
        ended = (trial for trial in self.trials if not trial.is_open)
        return sorted(ended, key=lambda trial: (trial.ended_at or 0.0, trial.id))

    def rows(self) -> list[tuple[Trial, float]]:
        """Training data of surrogates: (trial, score) in the order of the trial numbers.

        Finished trials have the mean of their values (``Data`` adds their number and spread),
        paused and stopped ones their last value, and those whose ending teaches the worst the worst
        score seen; all others are left out.
        """
        known: list[tuple[Trial, float | None]] = []
        for trial in self.trials:
            ending = trial.first.ending
            value = trial.last_value
            if ending is not None and ending.teaches == "worst":
                known.append((trial, None))
            elif value is not None and math.isfinite(value):
                known.append((trial, self.score(value)))
        worst = min((score for _, score in known if score is not None), default=None)
        if worst is None:
            return []
        return [(trial, worst if score is None else score) for trial, score in known]

    def curves(self, rows: Sequence[tuple[Trial, float]]) -> Curves | None:
        """How far the rows were trained, and their values at earlier rungs.

        ``None`` without rungs. Non-finite values are left out.
        """
        if self.rungs is None:
            return None
        full = self.rungs.full
        steps = [1.0 if t.partial is None else min(1.0, t.partial.step / full) for t, _ in rows]
        earlier = [
            (row, pause.step / full, self.score(pause.value))
            for row, (trial, _) in enumerate(rows)
            for pause in trial.first.pauses.values()
            if pause.step / full < steps[row] and math.isfinite(pause.value)
        ]
        return steps, earlier


class Snapshot(View):
    """A history at one moment, which other threads may read."""

    def __init__(self, history: View) -> None:
        self.space, self.objectives = history.space, history.objectives
        self.settings, self.budget = history.settings, history.budget
        self.is_exhausted, self.repeating = history.is_exhausted, history.repeating
        self.rungs, self.retired = history.rungs, set(history.retired)
        self.reference = history.reference
        self.last_time = history.last_time
        self.rounds, self.gaps = tuple(history.rounds), tuple(history.gaps)
        self.trials, self.past = tuple(history.trials), history.past
