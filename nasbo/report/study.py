"""Study: a sweep with everything that the figures of its report need."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from nasbo.errors import NasboError, SweepError
from nasbo.history import By, Trial, View
from nasbo.methods.explanation import Explanation
from nasbo.report.axes import number_text, value_limits
from nasbo.report.curves import Curve, shown_curves
from nasbo.report.drawing import SERIES, Drawing, beside
from nasbo.report.importance import Importance, measure_importance
from nasbo.sweeps import spending
from nasbo.sweeps.folder import SweepFolder
from nasbo.sweeps.rungs import at_step
from nasbo.sweeps.settings import Sweep
from nasbo.trainer import Trainer

MAX_MARKS = 2_000
"""Number of trials above which figures with one mark per trial are thinned."""
SOURCE_COLORS = {
    "design": "muted",
    "model": "c1",
    "probe": "c4",
    "fallback": "c6",
    "observed": "c3",
}


class NoDataError(NasboError):
    """A sweep has no data for a figure; the message says why."""


@dataclass(frozen=True)
class Figure:
    """One figure of a report: a drawing, several small ones, or a table as HTML, with words below.

    ``panels`` are drawings by their titles: as many to a row as there is room for.
    """

    name: str
    title: str
    caption: str
    drawing: Drawing | None = None
    html: str = ""
    is_wide: bool = False
    panels: Mapping[str, Drawing] = field(default_factory=dict)

    @property
    def picture(self) -> Drawing | None:
        """The drawing, or the panels as one; ``None`` for a table."""
        return beside([*self.panels.values()]) if self.panels else self.drawing


@dataclass(frozen=True)
class Study:
    """A sweep as the input of its report.

    ``beside`` are the sweeps that a page sets side by side, this one among them: their figures
    share scales and colours. ``by`` is what trials are ranked by. ``is_linked`` says that the page
    lies in the sweep's folder, so that it can link to the files there.
    """

    folder: SweepFolder
    history: View
    state: str
    trainer: Trainer | None = None
    trainer_problem: str = ""
    beside: Sequence[Study] = field(default=(), repr=False, compare=False)
    by: By = "estimate"
    is_linked: bool = False

    @property
    def together(self) -> Sequence[Study]:
        """The sweeps that share scales with this one, including itself."""
        return self.beside or (self,)

    @property
    def sweep(self) -> Sweep:
        """Settings of the sweep."""
        return self.folder.settings

    @cached_property
    def address(self) -> str:
        """Name of the sweep for readers: a URL, or the folder's name."""
        return self.folder.name if self.folder.location else self.folder.path.resolve().name

    @property
    def name(self) -> str:
        """Last part of the address."""
        return self.address.rpartition("/")[2]

    @property
    def metric(self) -> str:
        return self.sweep.metric or "value"

    @property
    def mode(self) -> str:
        return self.history.mode

    @property
    def budget(self) -> int:
        return self.history.budget or self.sweep.trials

    @cached_property
    def ended(self) -> list[Trial]:
        """Ended trials, including failed ones, in the order of their ends."""
        ended = [trial for trial in self.history.trials if not trial.is_open]
        return sorted(ended, key=lambda trial: (trial.ended_at or 0.0, trial.id))

    @cached_property
    def valued(self) -> list[Trial]:
        """Trials that ended with a value, in the order of their ends.

        With rungs these were trained in full: their values are of the same step.
        """
        return [trial for trial in self.ended if is_valued(trial)]

    @cached_property
    def course(self) -> list[tuple[float, Trial]]:
        """Trials with their positions on the budget's axis: numbers or, with
        rungs, trainings' worth.

        With rungs these are the trials that were trained in full.
        """
        rungs = self.history.rungs
        if rungs is None:
            return [*enumerate(self.ended, start=1)]
        return [(n / rungs.full, trial) for n, trial in spending.course(self.history)]

    @property
    def budget_title(self) -> str:
        """Title of the budget's axis."""
        has_rungs = self.history.rungs is not None
        return "full trainings' worth" if has_rungs else "trials that have ended"

    @property
    def in_full(self) -> str:
        """A caption sentence for figures that compare values; empty without rungs."""
        if self.history.rungs is None:
            return ""
        n, n_all = len(self.valued), len(self.history.trials)
        return f" Only the {n:,} of {n_all:,} trials that were trained in full are in it."

    @cached_property
    def ranked(self) -> list[Trial]:
        """Trials with a value, best first."""
        return self.history.objectives.ranked(self.valued, self.by)

    @property
    def best_value(self) -> float:
        """The value or estimate of the first ranked trial."""
        best = self.ranked[0]
        return value_of(best) if self.by == "observed" else expected_of(best)

    @property
    def value_limits(self) -> tuple[float, float]:
        """Limits of an axis of values."""
        return value_limits([value for one in self.together for value in one.values], self.mode)

    @cached_property
    def summaries(self) -> dict[int, dict[str, Any]]:
        """Cached summaries of the trainer by trial number, as they may be slow."""
        return {}

    @cached_property
    def curves(self) -> dict[int, Curve]:
        """Learning curves by trial number, those of trials that have told a value."""
        return shown_curves(self.history)

    @cached_property
    def values(self) -> list[float]:
        return [value_of(trial) for trial in self.valued]

    @cached_property
    def importance(self) -> Importance | None:
        """Importance of the parameters; ``None`` if there are too few results."""
        return measure_importance(self.history)

    @cached_property
    def explanation(self) -> Explanation:
        """What the method's model has learned; without a model, the reason for that."""
        try:
            method = self.folder.method
        except (NasboError, TypeError) as error:
            return Explanation(f"the method {self.sweep.method} cannot be had here: {error}")
        return method.explain(self.history)

    @cached_property
    def drawn(self) -> set[int]:
        """Numbers of the trials that are drawn in figures with one mark per trial."""
        if len(self.history.trials) <= MAX_MARKS:
            return {trial.id for trial in self.history.trials}
        best = {trial.id for trial in self.ranked[: MAX_MARKS // 4]}
        step = math.ceil(len(self.history.trials) / (MAX_MARKS - len(best)))
        return best | {trial.id for trial in self.history.trials[::step]}

    def some(self, most: int) -> list[Trial]:
        """Ranked trials, at most so many: the best third of these, and a part of the others."""
        trials = [trial for trial in self.ranked if trial.id in self.drawn]
        if len(trials) <= most:
            return trials
        best, rest = trials[: most // 3], trials[most // 3 :]
        return best + rest[:: math.ceil(len(rest) / (most - len(best)))]

    @property
    def thinned(self) -> str:
        """A caption sentence if not all trials are drawn."""
        n = len(self.history.trials)
        return f" Drawn are {len(self.drawn):,} of {n:,} trials." if len(self.drawn) < n else ""

    def group(self, trial: Trial, most: int = len(SERIES)) -> str:
        """The subspace of a trial; its first choice in spaces with more than ``most`` subspaces."""
        subspace = self.history.subspace(trial)
        is_listed = self.history.space.n_subspaces <= most
        return subspace.id if is_listed else subspace.first_choice

    @property
    def grouped(self) -> str:
        """A caption sentence if subspaces are grouped."""
        n = self.history.space.n_subspaces
        if n <= len(SERIES):
            return ""
        return f" The {n:,} subspaces are grouped by their first choice."

    @cached_property
    def group_colors(self) -> dict[str, str]:
        """Colours of the groups with most trials; the others are ``muted``."""
        trials = [trial for one in self._alike for trial in one.history.trials]
        counts = Counter(map(self.group, trials))
        n_colored = len(SERIES) if len(counts) <= len(SERIES) else len(SERIES) - 1
        first = {self.group(trial): trial.subspace for trial in reversed(trials)}
        chosen = [name for name, _ in counts.most_common(n_colored)]
        chosen.sort(key=lambda name: (first[name], name))
        return dict(zip(chosen, SERIES, strict=False))

    @cached_property
    def _alike(self) -> list[Study]:
        """The sweeps over the same space, which share colours of subspaces."""
        own = self.history.space.fingerprint()
        return [one for one in self.together if one.history.space.fingerprint() == own]

    def color(self, trial: Trial) -> str:
        return self.group_colors.get(self.group(trial), "muted")

    def group_legend(self) -> list[tuple[str, str]]:
        """Legend entries: (group, colour)."""
        entries = list(self.group_colors.items())
        names = {self.group(trial) for one in self._alike for trial in one.history.trials}
        n_others = len(names) - len(entries)
        return entries + ([(f"{n_others:,} others", "muted")] if n_others > 0 else [])

    def require_values(self, least: int = 1) -> None:
        """Raise ``NoDataError`` if fewer than ``least`` trials ended with a value."""
        if len(self.valued) < least:
            wanted = "no trial" if least == 1 else f"fewer than {least} trials"
            has_rungs = self.history.rungs is not None
            how = "were trained in full" if least > 1 else "was trained in full"
            raise NoDataError(f"{wanted} {how if has_rungs else 'ended with a value'} so far")

    def words(self, trial: Trial) -> str:
        """A trial in a few lines, for the tooltip."""
        value = trial.cause or trial.state
        if trial.value is not None:
            value = f"{self.metric} {values_text(trial)}"
        elif trial.partial is not None:
            last = number_text(trial.partial.value, 5) + at_step(self.history, trial)
            value = f"{value}, {self.metric} {last}"
        subspace = shorten_id(self.history.subspace(trial).id)
        return f"trial {trial.id}: {value}\n{subspace}\nround {trial.round}, {trial.source}"


def is_valued(trial: Trial) -> bool:
    return not trial.is_open and trial.value is not None and math.isfinite(trial.value)


def value_of(trial: Trial) -> float:
    """The value of a trial that has one."""
    if trial.value is None:
        raise ValueError(f"trial {trial.id} has no value")
    return trial.value


def last_text(trial: Trial) -> str:
    """The value of a trial; after a partial training its last value and step."""
    if trial.partial is None:
        return number_text(value_of(trial), 5)
    return f"{number_text(trial.partial.value, 5)} at step {trial.partial.step}"


def expected_of(trial: Trial) -> float:
    """The estimate of a trial's value; without one the value itself."""
    return value_of(trial) if trial.expected is None else trial.expected


def values_text(trial: Trial) -> str:
    """The value of a trial and, under noise, its estimate."""
    text = number_text(value_of(trial), 5)
    if trial.estimate is None:
        return text
    return f"{text} ({number_text(trial.estimate.mean, 5)} expected)"


def key_of(trial: Trial) -> str:
    """Key that connects the marks of one trial in all figures."""
    return f"t{trial.id}"


def shorten_id(text: str, size: int = 60) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"


def open_study(folder: str | os.PathLike[str], by: By = "estimate") -> Study:
    """Read a sweep for a report, with its trainer if that can be imported.

    Args:
        folder: of the sweep.
        by: criterion that ranks its trials.
    """
    sweep = SweepFolder(folder)
    trainer: Trainer | None
    try:
        trainer, problem = sweep.trainer, ""
    except SweepError as error:
        trainer = None
        problem = f"the trainer {sweep.settings.trainer} cannot be had here ({error})"
    return Study(sweep, sweep.history, sweep.state, trainer, problem, by=by)


def summarise(study: Study, trial: Trial) -> dict[str, Any]:
    """The trainer's summary of a config; empty if it has none.

    Raises:
        NoDataError: the trainer's function failed.
    """
    if study.trainer is None or study.trainer.summary is None:
        return {}
    if trial.id in study.summaries:
        return study.summaries[trial.id]
    try:
        found = dict(study.trainer.describe(trial.config, study.sweep.trainer_options))
    except Exception as error:
        what = f"{type(error).__name__}: {error}"[:200]
        raise NoDataError(f"the trainer's summary of trial {trial.id} failed ({what})") from error
    study.summaries[trial.id] = found
    return found
