"""Prometheus gauges of a running sweep, on Ray's own metrics port.

All metrics are gauges computed from the history: a resumed sweep continues where it was, and
nothing is counted twice. Ray prefixes each name with ``ray_``. Labels are bounded: there are few
states and causes, and in a space with many subspaces they are grouped by their first choice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from statistics import median

from ray.util.metrics import Gauge

from nasbo.history import CAUSES, By, Ending, Trial, View
from nasbo.sweeps.rungs import rung_rows
from nasbo.sweeps.settings import Sweep
from nasbo.sweeps.spending import n_trained

PERIOD_S = 5.0
"""Ray exports metrics every ten seconds, so sampling faster is useless."""
MAX_SUBSPACES = 16
RECENT = 50
OTHER = "other"
STATES = ("waiting", "running", "paused", "finished", "failed")

DESCRIPTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "nasbo_sweep": ("1 while the sweep runs", ("method", "space", "metric", "mode")),
    "nasbo_best_value": ("best value so far, as the trainer reports it", ()),
    "nasbo_best_expected": ("what is expected of the best trial; without noise its value", ()),
    "nasbo_hypervolume": ("of several objectives: hypervolume of their front", ()),
    "nasbo_front_trials": ("of several objectives: trials on their front", ()),
    "nasbo_trials": ("trials by state", ("state",)),
    "nasbo_budget": ("trials that there are to be; with rungs full trainings' worth", ()),
    "nasbo_spent": ("what is used of the budget", ()),
    "nasbo_epochs": ("steps that were trained", ()),
    "nasbo_rung_trials": ("trials at each rung, by what became of them", ("rung", "state")),
    "nasbo_round": ("rounds that have been decided after the design", ()),
    "nasbo_suggest_seconds": ("duration of the last decision", ()),
    "nasbo_fit_seconds": ("duration of the last fit of the surrogate, as a part of that", ()),
    "nasbo_fallbacks": ("configs that were drawn at random because a decision failed", ()),
    "nasbo_slots": ("trials that can run at once", ()),
    "nasbo_worker_busy_ratio": ("running trials by slots", ()),
    "nasbo_trial_seconds": (f"median training time of the last {RECENT} finished trials", ()),
    "nasbo_subspace_best": ("best value so far by subspace", ("subspace",)),
    "nasbo_subspace_trials": ("trials so far by subspace", ("subspace",)),
    "nasbo_failures": ("failed trials by cause", ("cause",)),
    "nasbo_retries": ("retries of trials, by cause", ("cause",)),
}
"""Description and labels (besides ``sweep``) of each metric, by name."""
RETRIED = tuple(str(ending) for ending in Ending if ending.value.again != "never")

_BESTS: dict[str, By] = {"nasbo_best_value": "observed", "nasbo_best_expected": "estimate"}

Sample = tuple[str, float, Mapping[str, str]]


class SweepMetrics:
    """Sets the gauges of a sweep from its history.

    Args:
        name: of the sweep, which is the label ``sweep`` of all metrics.
        sweep: its settings.
        slots: returns the number of trials that can run at once.
    """

    def __init__(self, name: str, sweep: Sweep, slots: Callable[[], int]) -> None:
        self._name, self._sweep, self._slots = name, sweep, slots
        self._labels = SubspaceLabels()
        self._gauges: dict[str, Gauge] = {}
        self._next = 0.0

    def __call__(self, history: View, note: str = "") -> None:
        """Set all gauges if the period has passed."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + PERIOD_S
            for name, value, labels in self.samples(history):
                self._gauge(name).set(value, tags={"sweep": self._name, **labels})

    def _gauge(self, name: str) -> Gauge:
        """The gauge of that name, created on first use, where a failure does no harm."""
        if name not in self._gauges:
            words, labels = DESCRIPTIONS[name]
            self._gauges[name] = Gauge(name, words, tag_keys=("sweep", *labels))
        return self._gauges[name]

    def samples(self, history: View) -> Iterator[Sample]:
        """Current samples: (metric, value, labels)."""
        yield "nasbo_sweep", 1.0, sweep_labels(self._sweep)
        yield from course_samples(history)
        yield "nasbo_budget", history.budget or self._sweep.trials, {}
        yield from training_samples(history)
        yield from worker_samples(history, self._slots())
        yield from ending_samples(history)
        yield from subspace_samples(history, self._labels)


def sweep_labels(sweep: Sweep) -> dict[str, str]:
    """Labels that do not change while a sweep runs."""
    space = sweep.space.replace("\\", "/").rpartition("/")[2].removesuffix(".yaml")
    metric = sweep.metric or "value"
    return {"method": sweep.method, "space": space, "metric": metric, "mode": sweep.mode}


def course_samples(history: View) -> Iterator[Sample]:
    """Progress of the search, and the time of its decisions."""
    for name, by in _BESTS.items():
        best = next(iter(history.ranked(by)), None)
        if best is None or best.value is None:  # values at different steps are not comparable
            continue
        expected = best.value if best.expected is None else best.expected
        yield name, expected if by == "estimate" else best.value, {}
    if (volume := history.hypervolume) is not None:
        yield "nasbo_hypervolume", volume, {}
        yield "nasbo_front_trials", len(history.front), {}
    yield "nasbo_round", max(len(history.rounds) - 1, 0), {}
    if history.rounds:
        yield "nasbo_suggest_seconds", history.rounds[-1].seconds, {}
    fits = (trial.info["fit_s"] for trial in reversed(history.trials) if "fit_s" in trial.info)
    yield "nasbo_fit_seconds", float(next(fits, 0.0)), {}
    yield "nasbo_fallbacks", sum(trial.source == "fallback" for trial in history.trials), {}


def worker_samples(history: View, slots: int) -> Iterator[Sample]:
    """Use of the workers; repeats of the best configs also keep them busy."""
    counts = history.state_counts()
    n_running = sum(run.state == "running" for run in history.open_runs)
    for state in STATES:
        yield "nasbo_trials", counts[state], {"state": state}
    yield "nasbo_slots", slots, {}
    yield "nasbo_worker_busy_ratio", min(n_running / slots, 1.0) if slots else 0.0, {}
    finished = [run for run in history.runs if run.state == "finished" and run.attempts]
    if finished:
        yield "nasbo_trial_seconds", median(run.seconds for run in finished[-RECENT:]), {}


def ending_samples(history: View) -> Iterator[Sample]:
    """Failures and retries by cause; causes that have not occurred are 0, so
    that alerts can be defined.
    """
    causes, retries = history.cause_counts(), history.retry_counts()
    for cause in CAUSES:
        yield "nasbo_failures", causes[cause], {"cause": cause}
    for cause in RETRIED:
        yield "nasbo_retries", retries[cause], {"cause": cause}


def training_samples(history: View) -> Iterator[Sample]:
    """Training steps, and trials at each rung by what became of them."""
    yield "nasbo_spent", history.spent, {}
    yield "nasbo_epochs", n_trained(history.runs), {}
    for row in rung_rows(history):
        states = {"promoted": row.n_promoted, "paused": row.n_paused, "failed": row.n_failed}
        states["finished"] = row.n_seen - sum(states.values())
        for state, n in states.items():
            yield "nasbo_rung_trials", n, {"rung": str(row.step), "state": state}


class SubspaceLabels:
    """Stable labels for subspaces, of bounded number: a gauge's label cannot be withdrawn."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    def __call__(self, history: View, trial: Trial) -> str:
        """The subspace's id; its first choice if there are many; ``other`` beyond the limit."""
        if trial.subspace not in self._names:
            self._names[trial.subspace] = self._new_name(history, trial)
        return self._names[trial.subspace]

    def _new_name(self, history: View, trial: Trial) -> str:
        subspace = history.subspace(trial)
        is_listed = history.space.n_subspaces <= MAX_SUBSPACES
        name = subspace.id if is_listed else subspace.first_choice
        known = set(self._names.values()) - {OTHER}
        return name if name in known or len(known) < MAX_SUBSPACES else OTHER


def subspace_samples(history: View, label: SubspaceLabels) -> Iterator[Sample]:
    """Number of trials and best value, by subspace."""
    counts: dict[str, int] = {}
    best: dict[str, float] = {}
    for trial in history.trials:
        name = label(history, trial)
        counts[name] = counts.get(name, 0) + 1
        if trial.value is not None and history.objectives.is_better(trial.value, best.get(name)):
            best[name] = trial.value
    for name, count in counts.items():
        yield "nasbo_subspace_trials", count, {"subspace": name}
    for name, value in best.items():
        yield "nasbo_subspace_best", value, {"subspace": name}
