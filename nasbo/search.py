"""Ask/tell interface of a search, with a journal that remembers it."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any

from threadpoolctl import threadpool_limits

from nasbo.errors import NasboError, shorten
from nasbo.feasibility import failing_regions
from nasbo.history import (
    CAUSES,
    FORMAT,
    VALUES,
    Event,
    History,
    Mode,
    Trial,
    check_settings,
    config_key,
    event,
    json_safe,
)
from nasbo.journal import Journal
from nasbo.methods import Suggestion, make_method
from nasbo.methods.feasible import first_allowed
from nasbo.space import Config, Space, load_space


class Search:
    """A search without Ray.

    Args:
        space: a ``Space``, the path of a space file, the name of a shipped one, or a dict.
        method: a name from ``nasbo.METHODS``.
        mode: whether values are to be made small (``"min"``) or large (``"max"``).
        seed: the same seed and the same values give the same configs.
        journal: a file that remembers the search; opening it again continues the search, and
            trials that were handed out but not told come first. A ``Journal`` is used as it is.
        notes: what else the first line of the journal is to remember, plain values.
        past: events of an earlier search to continue from, where there is no journal.
        limits: whether a config may be suggested at all; the method keeps to it.
        options: of the method, e.g. ``preset="paper"``.
    """

    events: list[Event]
    """All events so far, but for those of progress."""

    def __init__(
        self,
        space: Space | Mapping[str, Any] | str | os.PathLike[str],
        method: str = "attnbo",
        mode: Mode = "min",
        seed: int = 0,
        journal: str | os.PathLike[str] | Journal | None = None,
        notes: Mapping[str, Any] | None = None,
        past: Sequence[Event] = (),
        limits: Callable[[Config], bool] | None = None,
        **options: Any,
    ) -> None:
        self.space = load_space(space)
        self.history = History(self.space, mode)
        self._method = make_method(method, self.space, seed, **options)
        if limits is not None:
            first_allowed(self.space, limits)  # an error before the first result, not after it
            self._method.limits = limits
        self._settings = event(
            "settings",
            format=FORMAT,
            space=self.space.fingerprint(),
            tree=json_safe(self.space.to_dict()),
            method=method,
            mode=mode,
            seed=seed,
            options=json_safe(options),
            predictions=VALUES,
            **json_safe(notes or {}),
        )
        if journal is not None and not isinstance(journal, Journal):
            journal = Journal(Path(journal))
        self.journal = journal
        self._returned: deque[int] = deque()
        self.events = []
        self._begin(self.journal.events if self.journal else past)

    def _begin(self, past: Sequence[Event]) -> None:
        try:
            for item in past:
                self._apply(item)
            if past:
                self._check_settings(self.history.settings)
        except BaseException:
            self.close()
            raise
        if not past:
            self.record(self._settings)
        elif self.journal:
            self.record(event("opened"))
        self._returned.extend(trial.id for trial in self.history.open_trials)

    def _check_settings(self, settings: Event) -> None:
        check_settings(settings, self.history)
        for name in ("method", "seed", "options"):
            if settings.get(name) != self._settings[name]:
                raise NasboError(
                    f"the journal was begun with {name}={settings.get(name)!r}, "
                    f"not {self._settings[name]!r}"
                )

    def ask(self, n: int = 1) -> list[Trial]:
        """The next ``n`` trials to run; fewer only when the space has no untried config left."""
        if n < 1:
            raise NasboError(f"n >= 1 must hold, but got {n}")
        again = [self._returned.popleft() for _ in range(min(n, len(self._returned)))]
        waiting = [self.history.trials[number] for number in again]
        if len(waiting) < n:
            waiting += self.open_round(n - len(waiting))
        for trial in waiting:
            self.start(trial)
        return [trial.copy() for trial in waiting]

    @property
    def n_returned(self) -> int:
        """How many trials of an interrupted run ``ask`` hands out before new ones."""
        return len(self._returned)

    def start(self, trial: Trial) -> None:
        """Note that a trial is handed out to be run."""
        self.record(event("started", trial=trial.id))

    def open_round(self, n: int) -> list[Trial]:
        """Have the method decide on ``n`` trials and write them down; none is started."""
        return self.add_round(*self.decide(n))

    def decide(self, n: int) -> tuple[list[Suggestion], float]:
        """What the method would do next, and the seconds that this took; nothing is written."""
        begin = time.perf_counter()
        # Matrices are small: threads that wait for each other cost more than they bring, and their
        # number would show in the last digits.
        with nullcontext() if self.is_quick else threadpool_limits(1):
            return self._method.suggest(self.history, n), time.perf_counter() - begin

    @property
    def is_quick(self) -> bool:
        """Whether the method decides in an instant."""
        return self._method.is_quick

    def add_round(
        self, suggestions: list[Suggestion], seconds: float, unseen: Sequence[int] | None = None
    ) -> list[Trial]:
        """Write down a round that was decided elsewhere.

        Args:
            suggestions: what was decided.
            seconds: what the decision took.
            unseen: trials whose results the decision did not see; default those open now.
        """
        if not suggestions:
            return []
        number, first = len(self.history.rounds), len(self.history.trials)
        if unseen is None:
            unseen = [trial.id for trial in self.history.open_trials]
        opened = event(
            "round",
            round=number,
            size=len(suggestions),
            unseen=list(unseen),
            seconds=round(seconds, 4),
        )
        if regions := failing_regions(self.history):
            opened["set_aside"] = [str(region) for region in regions]
        lines = [
            event(
                "suggested",
                trial=first + place,
                round=number,
                source=suggestion.source,
                subspace=self.space.subspace_of(suggestion.config).index,
                config=suggestion.config,
                info=json_safe(suggestion.info),
            )
            for place, suggestion in enumerate(suggestions)
        ]
        self.record(opened, *lines)
        return self.history.trials[first:]

    def tell(
        self,
        trial: Trial | int,
        value: float | None = None,
        *,
        error: str | None = None,
        metrics: Mapping[str, Any] | None = None,
        message: str = "",
        step: int = 0,
    ) -> None:
        """Say how a trial ended: with a value, or with an error by its cause.

        A value that is not finite counts as ``error="diverged"``. ``error="stopped"`` may come
        with the value that the trial had.

        Raises:
            NasboError: no such trial, or it was told before.
        """
        known = self._open_trial(trial)
        cause, value = _cause_of(value, error)
        details = json_safe(metrics or {})
        if cause is None:
            ending = event("finished", trial=known.id, value=value, metrics=details)
        else:
            ending = event("failed", trial=known.id, cause=cause, value=value)
        self.record({**ending, "step": step, "message": message})

    def answer(self, trial: Trial, twin: Trial) -> None:
        """End a trial with the result of another one that trained the same network."""
        known = self._open_trial(trial)
        first = twin.id if twin.same_as is None else twin.same_as
        ending = event("finished", trial=known.id, value=twin.value, metrics=twin.metrics)
        words = f"the same network as trial {first}"
        self.record({**ending, "step": twin.step, "same_as": first, "message": words})

    def repeat(self, *trials: Trial) -> list[Trial]:
        """Have the configs of trials trained again, with other seeds.

        The new trials are outside the budget; their values enter the means of the first ones.
        """
        first = len(self.history.trials)
        for trial in trials:
            if trial.state == "failed" or trial.repeat_of is not None:
                raise NasboError(f"a trial that failed, or a repeat, is not repeated: {trial.id}")
        self.record(
            *(
                event("repeated", trial=number, of=trial.id)
                for number, trial in enumerate(trials, start=first)
            )
        )
        return self.history.trials[first:]

    def requeue(self, trial: Trial | int, cause: str, message: str = "") -> None:
        """Note that a running trial broke off and is to be run again under its own number."""
        known = self._open_trial(trial)
        self.record(event("requeued", trial=known.id, cause=cause, message=message))

    def observe(self, config: Config, value: float) -> None:
        """Take in a result from elsewhere: it counts towards its subspace's design."""
        config, value = self.space.canonical(config), _number(value)
        if not math.isfinite(value):
            raise NasboError(f"an observed value must be finite, got {value}")
        self.record(
            event(
                "observed",
                trial=len(self.history.trials),
                config=config,
                subspace=self.space.subspace_of(config).index,
                value=value,
            )
        )

    def report(
        self, trial: Trial | int, step: int, value: float | None, metrics: Mapping[str, Any]
    ) -> None:
        """Note how far a running trial is; not forced to disk, as a restart reports again."""
        known = self._open_trial(trial)
        self.record(
            event(
                "reported",
                trial=known.id,
                step=step,
                value=json_safe(value),
                metrics=json_safe(metrics),
            ),
            sync=False,
        )

    @property
    def best(self) -> Trial:
        """The finished trial with the best value."""
        if (best := self.history.best) is None:
            raise NasboError("nothing has finished yet")
        return best.copy()

    @property
    def trials(self) -> list[Trial]:
        """All trials so far, copies."""
        return [trial.copy() for trial in self.history.trials]

    def is_known(self, config: Config) -> bool:
        """Whether a config was suggested or observed before."""
        return config_key(self.space.canonical(config)) in self.history.keys

    def record(self, *events: Event, sync: bool = True) -> None:
        """Write events to the journal, then to the history: what is known is on disk."""
        if not events:
            return
        if self.journal:
            self.journal.append(*events, sync=sync)
        for item in events:
            self._apply(item)

    def _apply(self, item: Event) -> None:
        self.history.apply(item)
        if item["event"] != "reported":  # progress is for onlookers, methods do without
            self.events.append(item)

    def close(self) -> None:
        """Give the journal back to other processes."""
        if self.journal:
            self.journal.close()

    def __enter__(self) -> Search:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open_trial(self, trial: Trial | int) -> Trial:
        number = trial.id if isinstance(trial, Trial) else trial
        if not 0 <= number < len(self.history.trials):
            raise NasboError(f"there is no trial {number}")
        known = self.history.trials[number]
        if not known.is_open:
            raise NasboError(f"trial {number} has been told before: it is {known.state}")
        return known


def _number(value: Any) -> float:
    try:
        if isinstance(value, str | bytes | bool):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise NasboError(f"a value must be a number, got {shorten(value)}") from error


def _cause_of(value: float | None, error: str | None) -> tuple[str | None, float | None]:
    if error is not None and error not in CAUSES:
        raise NasboError(f"error must be one of {', '.join(CAUSES)}, got {error!r}")
    if value is None and error is None:
        raise NasboError("tell needs a value or an error")
    number = None if value is None else _number(value)
    if number is not None and not math.isfinite(number):
        return error or "diverged", None
    return error, number
