"""History of a search: trials that were suggested, run, finished and failed.

The history is the only state of a search: everything else is rebuilt from it.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean
from typing import Any

from nasbo.errors import JournalError, NasboError
from nasbo.records import (
    CAUSES,
    PREDICTION,
    TEACHING_CAUSES,
    Attempt,
    Mode,
    Repeating,
    Round,
    Source,
    State,
    Trial,
    config_key,
)
from nasbo.space import Space, Subspace
from nasbo.space.difference import first_difference

__all__ = [
    "CAUSES",
    "FORMAT",
    "PREDICTION",
    "Attempt",
    "Event",
    "History",
    "Mode",
    "Repeating",
    "Round",
    "Source",
    "State",
    "Trial",
    "check_settings",
    "config_key",
    "event",
    "json_safe",
    "replay",
]

FORMAT = 1
VALUES = "values"
"""What the settings say under ``predictions`` where these are values of the metric."""
Event = dict[str, Any]
_PREPARING = ("opened", "budget", "repeating", "started")
"""What a new driver writes before trials show that they are alive."""


class History:
    """All trials of a search, in the order of their numbers.

    Attributes:
        gaps: (end, start) of drivers: times without one, between an interruption and a resume.
        last_time: when the last event happened.
    """

    def __init__(self, space: Space, mode: Mode = "min") -> None:
        if mode not in ("min", "max"):
            raise NasboError(f"mode must be 'min' or 'max', got {mode!r}")
        self.space = space
        self.mode = mode
        self.settings: Event = {}
        self.trials: list[Trial] = []
        self.repeats: list[Trial] = []
        self._open: dict[int, Trial] = {}
        self.rounds: list[Round] = []
        self.budget: int | None = None
        self.is_exhausted = False
        self.repeating = Repeating()
        self.keys: set[str] = set()
        self.gaps: list[tuple[float, float]] = []
        self.last_time = self._last_sign = 0.0
        self._handlers = {
            "settings": self._on_settings,
            "budget": self._on_budget,
            "exhausted": self._on_exhausted,
            "repeating": self._on_repeating,
            "repeated": self._on_repeated,
            "opened": self._on_opened,
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
        self.last_time = event.get("time", self.last_time)
        if event["event"] not in _PREPARING:
            self._last_sign = self.last_time

    # What methods and displays ask

    @property
    def configs(self) -> list[Trial]:
        """A trial per config: all but repeats, whose values their first trials hold."""
        return [trial for trial in self.trials if trial.repeat_of is None]

    @property
    def suggested(self) -> list[Trial]:
        """The trials of the search itself, without results from elsewhere and repeats."""
        return [trial for trial in self.configs if trial.source != "observed"]

    @property
    def ran(self) -> list[Trial]:
        """What was handed out to workers here: suggested trials and repeats."""
        return [trial for trial in self.trials if trial.source != "observed"]

    @property
    def n_suggested(self) -> int:
        return len(self.trials) - self._n_observed - len(self.repeats)

    @property
    def open_trials(self) -> list[Trial]:
        return [self._open[number] for number in sorted(self._open)]

    @property
    def n_ended(self) -> int:
        """How many suggested trials have ended, well or badly: what counts against a budget."""
        n_open = sum(trial.repeat_of is None for trial in self._open.values())
        return self.n_suggested - n_open

    def score(self, value: float) -> float:
        """A value as a score, larger is better."""
        return value if self.mode == "max" else -value

    @property
    def best(self) -> Trial | None:
        """The trial with the best value, among those finished or stopped early."""
        return min(self._valued(), key=self._rank, default=None)

    def ranked(self) -> list[Trial]:
        """All trials with values, the best first, without repeats."""
        return sorted(self._valued(), key=self._rank)

    def _valued(self) -> Iterator[Trial]:
        return (t for t in self.configs if not t.is_open and t.value is not None)

    def _rank(self, trial: Trial) -> tuple[float, int]:
        return -self.score(trial.value or 0.0), trial.id

    def best_so_far(self) -> list[float]:
        """Best value after each ended trial, in the order in which the trials ended."""
        ended = sorted(
            (t for t in self.configs if not t.is_open), key=lambda t: (t.ended_at or 0.0, t.id)
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

        Finished trials count with the mean of their values, stopped ones with the value that they
        had, those of ``TEACHING_CAUSES`` with the worst score seen; all other endings say nothing.
        """
        known: list[tuple[Trial, float | None]] = []
        for trial in self.configs:
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
        """Configs per subspace that count towards the initial design.

        One that took the place of a subspace without allowed configs counts there.
        """
        counted = (t for t in self.trials if t.source in ("design", "observed"))
        return Counter(t.info.get("instead_of", t.subspace) for t in counted)

    def state_counts(self) -> Counter[str]:
        return Counter(trial.state for trial in self.suggested)

    def retry_counts(self) -> Counter[str]:
        """How often trials were begun again, by cause."""
        return sum((trial.retries for trial in self.trials), Counter())

    def cause_counts(self) -> Counter[str]:
        return Counter(t.cause for t in self.trials if t.cause is not None)

    # What events do

    _n_observed = 0
    _predicts_scores = False

    def _on_settings(self, event: Event) -> None:
        check_settings(event, self)
        self.settings = event
        self._predicts_scores = event.get("predictions") != VALUES and self.mode == "min"
        self.budget = event.get("trials", self.budget)
        self.repeating = Repeating(event.get("repeats", 0), event.get("repeat_top", 3))

    def _on_budget(self, event: Event) -> None:
        self.budget, self.is_exhausted = event["trials"], False

    def _on_exhausted(self, event: Event) -> None:
        """The method had no config left to suggest."""
        self.is_exhausted = True

    def _on_repeating(self, event: Event) -> None:
        self.repeating = Repeating(event["repeats"], event["top"])

    def _on_repeated(self, event: Event) -> None:
        first = self._get({"trial": event["of"]})
        trial = Trial(event["trial"], first.config, first.subspace, "repeat", round=-1)
        trial.repeat_of, trial.suggested_at = first.id, event["time"]
        self._add(trial)
        self.repeats.append(trial)

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
                info=self._info(event),
                suggested_at=event["time"],
            )
        )

    def _info(self, event: Event) -> dict[str, Any]:
        """A suggestion's info; older journals hold predictions as scores, larger is better."""
        info: dict[str, Any] = event.get("info", {})
        known = [info.get(key) for key in PREDICTION]
        if not self._predicts_scores or None in known:
            return info
        median, low, high = (-float(score or 0.0) for score in known)
        return info | dict(zip(PREDICTION, (median, high, low), strict=True))

    def _on_observed(self, event: Event) -> None:
        trial = Trial(event["trial"], event["config"], event["subspace"], "observed", round=-1)
        trial.state, trial.value, trial.values = "finished", event["value"], [event["value"]]
        trial.suggested_at = trial.ended_at = event["time"]
        self._n_observed += 1
        self._add(trial)

    def _on_opened(self, event: Event) -> None:
        """A new driver: the attempts of the one before ended with it."""
        self._break_off(self.last_time, event.get("time", self.last_time))

    def _break_off(self, end: float, start: float) -> None:
        """Note a gap between two drivers; no attempt reaches beyond its beginning."""
        if self.trials and start > end:
            self.gaps.append((end, start))
        for trial in self._open.values():
            if trial.current is not None:
                trial.end_attempt(end)

    def _on_started(self, event: Event) -> None:
        trial = self._get(event)
        if trial.current is not None:  # a journal from before drivers wrote that they opened it
            self._break_off(self._last_sign, event["time"])
        trial.state = "running"
        trial.begin_attempt(event["time"])
        trial.started_at = trial.started_at or event["time"]

    def _on_reported(self, event: Event) -> None:
        trial = self._get(event)
        trial.step = event["step"]
        trial.metrics = event["metrics"]
        if event["value"] is not None:
            trial.curve.append((event["step"], event["value"]))

    def _on_requeued(self, event: Event) -> None:
        trial = self._get(event)
        self._end_attempt(trial, event)
        trial.state, trial.message = "waiting", event.get("message", "")
        trial.retries[event["cause"]] += 1

    def _on_finished(self, event: Event) -> None:
        trial = self._end(event, "finished")
        trial.value, trial.values = event["value"], [event["value"]]
        trial.metrics = event.get("metrics") or trial.metrics
        trial.same_as = event.get("same_as")
        first = self.trials[trial.repeat_of] if trial.repeat_of is not None else trial
        self._average(self.trials[first.same_as] if first.same_as is not None else first)

    def _average(self, first: Trial) -> None:
        """The mean of a trial and its repeats; trials of the same network follow."""
        repeats = [t for t in self.repeats if t.repeat_of == first.id and t.value is not None]
        if not repeats or first.value is None:
            return
        own = first.values[0]
        first.values = [own, *(t.values[0] for t in repeats)]
        for trial in self.configs:
            if trial.id == first.id or trial.same_as == first.id:
                trial.values, trial.value = first.values, fmean(first.values)

    def _on_failed(self, event: Event) -> None:
        trial = self._end(event, "failed")
        trial.cause = event["cause"]
        trial.value = event.get("value") if trial.cause == "stopped" else None

    def _end(self, event: Event, state: State) -> Trial:
        trial = self._get(event)
        if not trial.is_open:
            raise JournalError(f"trial {trial.id} has ended already ({trial.state})")
        del self._open[trial.id]
        self._end_attempt(trial, event)
        trial.state, trial.ended_at = state, event["time"]
        trial.step = event.get("step") or trial.step
        trial.message = event.get("message", "")
        return trial

    def _end_attempt(self, trial: Trial, event: Event) -> None:
        """End what runs.

        A trial whose driver died and that ends without a new start ran on: somebody else's process
        holds it, as with ask and tell. Then there was no gap.
        """
        ran_on = trial.state == "running" and event.get("same_as") is None
        if trial.current is not None or (ran_on and trial.attempts):
            trial.end_attempt(event["time"])
            start = trial.attempts[-1].start
            self.gaps = [gap for gap in self.gaps if gap[1] <= start]

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
        told = "the journal belongs to another search space"
        if "tree" in event:
            told += f": {first_difference(event['tree'], history.space.to_dict())}"
        raise JournalError(told)
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
