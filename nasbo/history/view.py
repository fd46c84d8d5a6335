"""Read-only views of a history: what methods, displays and reports ask."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from nasbo.history.estimates import probability_of_best
from nasbo.history.events import Settings
from nasbo.history.objectives import By, Mode, Objectives
from nasbo.history.past import Past
from nasbo.history.records import Repeating, Round, Run, Trial, count_retries
from nasbo.history.rungs import Rungs
from nasbo.space import Space, Subspace

Curves = tuple[list[float], list[tuple[int, float, float]]]
"""The part of a full training that rows had, and (row, part, score) of their earlier values."""


class View:
    """What is known of a search: trials in the order of their numbers, and what follows from them.

    Attributes:
        space: what is searched.
        objectives: what it is searched for.
        settings: the first event; ``None`` before it.
        trials: one per config.
        past: other sweeps whose results were taken in.
        rounds: trials that were decided together.
        budget: how many configs there are to be; ``None`` where nobody said.
        is_exhausted: whether the method had no config left.
        repeating: how often the best configs are trained again.
        rungs: where trials pause and are compared; ``None`` where all are trained in full.
        retired: numbers of the paused runs that have no checkpoint any more.
        gaps: (end, start) of drivers: times without one, between an interruption and a resume.
        last_time: when the last event happened.
    """

    space: Space
    objectives: Objectives
    settings: Settings | None
    rounds: Sequence[Round]
    budget: int | None
    is_exhausted: bool
    repeating: Repeating
    rungs: Rungs | None
    retired: set[int]
    gaps: Sequence[tuple[float, float]]
    last_time: float
    trials: Sequence[Trial]
    past: tuple[Past, ...]

    @property
    def notes(self) -> Mapping[str, Any]:
        """What the sweep wanted to remember beside the search's own settings."""
        return {} if self.settings is None else self.settings.notes

    # Trials and runs

    def trial(self, number: int) -> Trial:
        """The trial of a number, its own or that of one of its runs."""
        return self._by_run[number]

    @cached_property
    def _by_run(self) -> dict[int, Trial]:
        """For views that do not change."""
        return {run.number: trial for trial in self.trials for run in trial.runs}

    def run(self, number: int) -> Run:
        """The run of a number."""
        return next(run for run in self.trial(number).runs if run.number == number)

    @property
    def suggested(self) -> list[Trial]:
        """The trials of the search itself, without results from elsewhere."""
        return [trial for trial in self.trials if trial.source != "observed"]

    @property
    def runs(self) -> list[Run]:
        """What was handed out to workers here, or will be, in the order of the numbers."""
        runs = (run for trial in self.suggested for run in trial.runs)
        return sorted(runs, key=lambda run: run.number)

    @property
    def repeats(self) -> list[Run]:
        """Further runs of trials, with other seeds."""
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
        """How many suggested trials have ended or paused: what counts against a budget."""
        return sum(not trial.is_open for trial in self.suggested)

    def cost(self, trial: Trial) -> int:
        """Steps that a trial has used of the budget, those of its present target included.

        A trial that needed no training, as it was refused or had a twin, counts as one at the first
        rung. There must be rungs.
        """
        assert self.rungs is not None
        run = trial.first
        reached = (run.until or self.rungs.full) if run.is_open and run.attempts else run.step
        return max(run.n_repeated_steps + reached, self.rungs.lower[0])

    @property
    def spent(self) -> float:
        """What was used of the budget: trials, or with rungs full trainings' worth of steps."""
        if self.rungs is None:
            return self.n_ended
        return sum(self.cost(trial) for trial in self.suggested) / self.rungs.full

    def design_counts(self) -> Counter[int]:
        """Configs per subspace that count towards the initial design.

        One that took the place of a subspace without allowed configs counts there.
        """
        counted = (t for t in self.trials if t.source in ("design", "observed"))
        return Counter(t.info.get("instead_of", t.subspace) for t in counted)

    def state_counts(self) -> Counter[str]:
        return Counter(trial.state for trial in self.suggested)

    def cause_counts(self) -> Counter[str]:
        """Why trials failed; repeats are counted apart."""
        return Counter(str(trial.cause) for trial in self.suggested if trial.state == "failed")

    def retry_counts(self) -> Counter[str]:
        """How often runs were begun again, by cause."""
        return count_retries(tuple(self.runs))

    # What is best

    @property
    def mode(self) -> Mode:
        return self.objectives.first.mode

    def score(self, value: float) -> float:
        """A value as a score, larger is better."""
        return self.objectives.first.score(value)

    def ranked(self, by: By = "estimate") -> list[Trial]:
        """All trials with values, the best first, as ``Objectives.ranked`` has it."""
        return self.objectives.ranked(self.trials, by)

    @property
    def best(self) -> Trial | None:
        """The trial that is expected to be the best, among those that finished.

        Without noise that is the one with the best value.
        """
        return next(iter(self.ranked()), None)

    @property
    def certainty(self) -> float | None:
        """Probability that the best trial is truly the best of those with estimates.

        These count as independent. ``None`` without estimates.
        """
        found = [trial.estimate for trial in self.ranked() if trial.estimate is not None]
        if not found:
            return None
        return probability_of_best([self.score(m) for m, _ in found], [sd for _, sd in found])

    def best_per_subspace(self) -> list[Trial]:
        """The best trial of each subspace that has results, the best first."""
        found: dict[int, Trial] = {}
        for trial in self.ranked():
            found.setdefault(trial.subspace, trial)
        return list(found.values())

    @property
    def has_own_result(self) -> bool:
        """Whether a trial of this search has a value; results from elsewhere do not count."""
        return any(trial.value is not None for trial in self.suggested)

    def best_so_far(self) -> list[float]:
        """Best value after each ended trial, in the order in which the trials ended."""
        ended = sorted(
            (t for t in self.trials if not t.is_open), key=lambda t: (t.ended_at or 0.0, t.id)
        )
        curve: list[float] = []
        best: float | None = None
        for trial in ended:
            is_known = trial.value is not None and trial.is_comparable
            if is_known and self.objectives.is_better(trial.value or 0.0, best):
                best = trial.value
            curve.append(math.nan if best is None else best)
        return curve

    def rows(self) -> list[tuple[Trial, float]]:
        """What surrogates learn from: (trial, score) in the order of the trial numbers.

        Finished trials count with the mean of their values (``Data`` adds how many these are and
        how far they lie apart), paused and stopped ones with their last value, and those whose
        ending teaches the worst with the worst score seen; all other endings say nothing.
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
        """How far the rows were trained, and what they had at earlier rungs.

        ``None`` where there are no rungs. Values that are no numbers are left out.
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
    """A history as it was at one moment; other threads may read it."""

    def __init__(self, history: View) -> None:
        self.space, self.objectives = history.space, history.objectives
        self.settings, self.budget = history.settings, history.budget
        self.is_exhausted, self.repeating = history.is_exhausted, history.repeating
        self.rungs, self.retired = history.rungs, set(history.retired)
        self.last_time = history.last_time
        self.rounds, self.gaps = tuple(history.rounds), tuple(history.gaps)
        self.trials, self.past = tuple(history.trials), history.past
