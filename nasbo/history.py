"""Events come in; what was suggested, is running, finished and failed goes out.

The history is the only state of a search: everything else is rebuilt from it.
"""

from __future__ import annotations

import copy
import json
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from nasbo.errors import JournalError, NasboError
from nasbo.space import Config, Space, Subspace

FORMAT = 1
Mode = Literal["min", "max"]
Source = Literal["design", "model", "fallback", "observed"]
State = Literal["waiting", "running", "finished", "failed"]
Event = dict[str, Any]

CAUSES = (
    "diverged",
    "invalid",
    "oom",
    "crashed",
    "killed",
    "lost",
    "timeout",
    "stopped",
    "no result",
)
TEACHING_CAUSES = ("diverged", "invalid")
"""Endings that say something about the config itself: the surrogate sees the worst score so far.
A ``stopped`` trial counts with the value it had; all other causes are left out."""


def config_key(config: Mapping[str, Any]) -> str:
    """A text that two configs share exactly if they are equal."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"))


@dataclass
class Trial:
    """One config and what became of it."""

    id: int
    config: Config
    subspace: int
    source: Source
    round: int = 0
    info: dict[str, Any] = field(default_factory=dict)
    state: State = "waiting"
    value: float | None = None
    cause: str | None = None
    message: str = ""
    step: int = 0
    attempts: int = 0
    retries: Counter[str] = field(default_factory=Counter)
    metrics: dict[str, Any] = field(default_factory=dict)
    curve: list[tuple[int, float]] = field(default_factory=list)
    suggested_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None

    @property
    def is_open(self) -> bool:
        """Handed out, or queued, and not ended."""
        return self.state in ("waiting", "running")

    def copy(self) -> Trial:
        """A copy whose config can be changed without harm to the history."""
        return replace(self, config=copy.deepcopy(self.config))


@dataclass(frozen=True)
class Round:
    """A set of trials that were decided together."""

    number: int
    size: int
    unseen: tuple[int, ...]
    time: float
    seconds: float


class History:
    """All trials of a search, in the order of their numbers."""

    def __init__(self, space: Space, mode: Mode = "min") -> None:
        if mode not in ("min", "max"):
            raise NasboError(f"mode must be 'min' or 'max', got {mode!r}")
        self.space = space
        self.mode = mode
        self.settings: Event = {}
        self.trials: list[Trial] = []
        self._open: dict[int, Trial] = {}
        self.rounds: list[Round] = []
        self.budget: int | None = None
        self.keys: set[str] = set()
        self._handlers = {
            "settings": self._on_settings,
            "budget": self._on_budget,
            "opened": lambda event: None,
            "round": self._on_round,
            "suggested": self._on_suggested,
            "observed": self._on_observed,
            "started": self._on_started,
            "reported": self._on_reported,
            "requeued": self._on_requeued,
            "finished": self._on_finished,
            "failed": self._on_failed,
        }

    def apply(self, event: Event) -> None:
        """Take in one event."""
        handler = self._handlers.get(event.get("event", ""))
        if handler is None:
            raise JournalError(f"unknown event {event.get('event')!r}")
        handler(event)

    # What methods and displays ask

    @property
    def suggested(self) -> list[Trial]:
        """The trials of the search itself, without results from elsewhere."""
        return [trial for trial in self.trials if trial.source != "observed"]

    @property
    def n_suggested(self) -> int:
        return len(self.trials) - self._n_observed

    @property
    def open_trials(self) -> list[Trial]:
        return [self._open[number] for number in sorted(self._open)]

    @property
    def n_ended(self) -> int:
        """How many suggested trials have ended, well or badly: what counts against a budget."""
        return len(self.trials) - len(self._open) - self._n_observed

    def score(self, value: float) -> float:
        """A value as a score, larger is better."""
        return value if self.mode == "max" else -value

    @property
    def best(self) -> Trial | None:
        """The trial with the best value, among those finished or stopped early."""
        done = [t for t in self.trials if not t.is_open and t.value is not None]
        return max(done, key=lambda t: (self.score(t.value or 0.0), -t.id), default=None)

    def best_so_far(self) -> list[float]:
        """Best value after each ended trial, in the order in which the trials ended."""
        ended = sorted(
            (t for t in self.trials if not t.is_open), key=lambda t: (t.ended_at or 0.0, t.id)
        )
        curve: list[float] = []
        for trial in ended:
            best = curve[-1] if curve else math.nan
            if trial.value is not None:
                better = not curve or math.isnan(best)
                if better or self.score(trial.value) > self.score(best):
                    best = trial.value
            curve.append(best)
        return curve

    def subspace(self, trial: Trial) -> Subspace:
        return self.space.subspace(trial.subspace)

    def rows(self) -> list[tuple[Trial, float]]:
        """What the surrogate learns from: (trial, score) in the order of the trial numbers.

        Finished trials count with their value, stopped ones with the value that they had, those of
        ``TEACHING_CAUSES`` with the worst score seen; all other endings say nothing.
        """
        known: list[tuple[Trial, float | None]] = []
        for trial in self.trials:
            usable = trial.state == "finished" or trial.cause == "stopped"
            if usable and trial.value is not None and math.isfinite(trial.value):
                known.append((trial, self.score(trial.value)))
            elif trial.state == "failed" and trial.cause in TEACHING_CAUSES:
                known.append((trial, None))
        worst = min((score for _, score in known if score is not None), default=None)
        if worst is None:
            return []
        return [(trial, worst if score is None else score) for trial, score in known]

    def design_counts(self) -> Counter[int]:
        """Configs per subspace that count towards the initial design."""
        return Counter(t.subspace for t in self.trials if t.source in ("design", "observed"))

    def state_counts(self) -> Counter[str]:
        return Counter(trial.state for trial in self.suggested)

    def retry_counts(self) -> Counter[str]:
        """How often trials were begun again, by cause."""
        return sum((trial.retries for trial in self.trials), Counter())

    def cause_counts(self) -> Counter[str]:
        return Counter(t.cause for t in self.trials if t.cause is not None)

    # What events do

    _n_observed = 0

    def _on_settings(self, event: Event) -> None:
        check_settings(event, self)
        self.settings = event
        self.budget = event.get("trials", self.budget)

    def _on_budget(self, event: Event) -> None:
        self.budget = event["trials"]

    def _on_round(self, event: Event) -> None:
        unseen = tuple(event["unseen"])
        self.rounds.append(
            Round(event["round"], event["size"], unseen, event["time"], event["seconds"])
        )

    def _on_suggested(self, event: Event) -> None:
        self._add(
            Trial(
                id=event["trial"],
                config=event["config"],
                subspace=event["subspace"],
                source=event["source"],
                round=event["round"],
                info=event.get("info", {}),
                suggested_at=event["time"],
            )
        )

    def _on_observed(self, event: Event) -> None:
        trial = Trial(event["trial"], event["config"], event["subspace"], "observed", round=-1)
        trial.state, trial.value = "finished", event["value"]
        trial.suggested_at = trial.ended_at = event["time"]
        self._n_observed += 1
        self._add(trial)

    def _on_started(self, event: Event) -> None:
        trial = self._get(event)
        trial.state = "running"
        trial.attempts += 1
        trial.started_at = trial.started_at or event["time"]

    def _on_reported(self, event: Event) -> None:
        trial = self._get(event)
        trial.step = event["step"]
        trial.metrics = event["metrics"]
        if event["value"] is not None:
            trial.curve.append((event["step"], event["value"]))

    def _on_requeued(self, event: Event) -> None:
        trial = self._get(event)
        trial.state, trial.message = "waiting", event.get("message", "")
        trial.retries[event["cause"]] += 1

    def _on_finished(self, event: Event) -> None:
        trial = self._end(event, "finished")
        trial.value = event["value"]
        trial.metrics = event.get("metrics") or trial.metrics

    def _on_failed(self, event: Event) -> None:
        trial = self._end(event, "failed")
        trial.cause = event["cause"]
        trial.value = event.get("value") if trial.cause == "stopped" else None

    def _end(self, event: Event, state: State) -> Trial:
        trial = self._get(event)
        if not trial.is_open:
            raise JournalError(f"trial {trial.id} has ended already ({trial.state})")
        del self._open[trial.id]
        trial.state, trial.ended_at = state, event["time"]
        trial.step = event.get("step") or trial.step
        trial.message = event.get("message", "")
        return trial

    def _get(self, event: Event) -> Trial:
        number = event["trial"]
        if not isinstance(number, int) or not 0 <= number < len(self.trials):
            raise JournalError(f"no trial {number!r}: there are {len(self.trials)}")
        return self.trials[number]

    def _add(self, trial: Trial) -> None:
        if trial.id != len(self.trials):
            raise JournalError(f"trial {trial.id} must be number {len(self.trials)}")
        self.trials.append(trial)
        if trial.is_open:
            self._open[trial.id] = trial
        self.keys.add(config_key(trial.config))


def check_settings(event: Event, history: History) -> None:
    """Raise ``JournalError`` if a journal belongs to another format, space or mode."""
    if event.get("format") != FORMAT:
        raise JournalError(
            f"the journal has format {event.get('format')!r}, this version reads {FORMAT}"
        )
    if event["space"] != history.space.fingerprint():
        raise JournalError("the journal belongs to another search space")
    if event["mode"] != history.mode:
        raise JournalError(f"the journal has mode {event['mode']!r}, not {history.mode!r}")


def replay(space: Space, mode: Mode, events: Iterable[Event]) -> History:
    """The history that a journal's events tell."""
    history = History(space, mode)
    for event in events:
        history.apply(event)
    return history


def event(kind: str, **fields: Any) -> Event:
    """An event with its time."""
    return {"event": kind, "time": round(time.time(), 3), **fields}


def json_safe(value: Any) -> Any:
    """Metrics as JSON can hold them: tensor scalars become plain, non-finite numbers ``None``."""
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    if getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int | bool) else str(value)
