"""Ask/tell interface of a search, with an optional journal."""

from __future__ import annotations

import inspect
import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from nasbo.errors import NasboError
from nasbo.features import Features, as_features
from nasbo.history import (
    By,
    Ending,
    History,
    Mode,
    Run,
    Rungs,
    Trial,
    check_settings,
    config_key,
    json_safe,
)
from nasbo.history import events as ev
from nasbo.history.journal import Journal, without_collection
from nasbo.methods import Suggestion
from nasbo.methods.feasible import first_allowed
from nasbo.search.begin import checked, suggestions
from nasbo.search.goal import (
    Texts,
    check_goal,
    due_reference,
    goal_of,
    known_numbers,
    told_values,
)
from nasbo.search.round_events import round_events
from nasbo.search.rungs import Promotion, due_promotions, first_target
from nasbo.search.told import (
    check_equal,
    check_rungs,
    ending_of,
    finite_value_of,
    method_of,
    number_of,
    rungs_note,
)
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
        features: numbers of a config that are known before it is tried, such as parameters of a
            network; always the same function for one search.
        objectives: one to three, such as ``["val_accuracy max", "params min"]``, instead of
            ``mode``. The first is a result of training. Those made of numbers of ``features`` are
            known before it; others are trained, too.
        rungs: steps at which trials pause and are compared, the last one a full training, or
            ``Rungs``. ``ask`` then returns the best ones again, with a later ``until``.
        begin: configs to try before those of the method; a search that is continued has had them.
        options: options of the method, e.g. ``preset="paper"``.
    """

    events: list[ev.Event]
    """All events so far."""

    def __init__(
        self,
        space: Space | Mapping[str, Any] | str | os.PathLike[str],
        method: str = "attnbo",
        mode: Mode = "min",
        seed: int = 0,
        journal: str | os.PathLike[str] | Journal | None = None,
        notes: Mapping[str, Any] | None = None,
        past: Sequence[ev.Event] = (),
        limits: Callable[[Config], bool] | None = None,
        rungs: Rungs | Sequence[int] | None = None,
        features: Features | Callable[[Config], Mapping[str, float]] | None = None,
        begin: Sequence[Config] = (),
        objectives: Texts | None = None,
        **options: Any,
    ) -> None:
        self.space = load_space(space)
        notes = {**(notes or {}), **rungs_note(rungs)}
        if (ready := as_features(features)) is not None:
            notes["features"] = list(ready.names_in(self.space))
        goal = goal_of(objectives, mode, notes.get("metric"), ready, self.space)
        self.history, self._features = History(self.space, goal), ready
        self._method = method_of(method, self.space, seed, options, _ARGUMENTS)
        if limits is not None:
            first_allowed(self.space, limits)  # an error before the first result, not after it
            self._method.limits = limits
        check_goal(self._method, method, goal, ready)
        check_rungs(goal, rungs)
        self._method.features = ready
        self._settings = ev.Settings(
            space=self.space.fingerprint(),
            tree=json_safe(self.space.to_dict()),
            method=method,
            objectives=goal.to_json(),
            seed=seed,
            options=json_safe(options),
            notes=json_safe(notes),
        )
        if journal is not None and not isinstance(journal, Journal):
            journal = Journal(Path(journal))
        self.journal = journal
        self.events = []
        first = suggestions(checked(self.space, begin, limits))
        self._open(past)
        if not self.history.n_suggested:
            self.add_round(first, 0.0)
        self._returned = deque(self.history.open_numbers)

    def _open(self, past: Sequence[ev.Event]) -> None:
        try:
            with without_collection():
                if self.journal is not None:
                    past = list(map(ev.Decoder(), self.journal.events))
                for item in past:
                    self._apply(item)
            if self.history.settings is not None:
                check_settings(self.history.settings, self.history)
                check_equal(self.history.settings, self._settings)
        except BaseException:
            self.close()
            raise
        if not past:
            self.record(self._settings)
        elif self.journal is not None:
            self.record(ev.Opened(), sync=False)

    def ask(self, n: int = 1) -> list[Trial]:
        """The next ``n`` trials to run; fewer only if the space has no untried config left.

        With rungs, each is to be trained from its ``resumed_from`` until its ``until``.
        """
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            raise NasboError(f"n must be an integer >= 1, got {n!r}")
        numbers = [self._returned.popleft() for _ in range(min(n, len(self._returned)))]
        for promotion in due_promotions(self.history, None, is_ending=False)[: n - len(numbers)]:
            self.promote(promotion)
            numbers.append(promotion.run)
        if len(numbers) < n:
            numbers += [trial.id for trial in self.open_round(n - len(numbers))]
        for number in numbers:
            run = self.history.run(number)
            until = first_target(self.history, run.is_repeat)
            if until is not None and not run.attempts:
                self.target(number, until)
            self.start(number)
        return [self.history.trial(number).copy() for number in numbers]

    @property
    def n_returned(self) -> int:
        """Number of runs of an interrupted search that ``ask`` returns before new ones."""
        return len(self._returned)

    def start(self, run: Run | Trial | int) -> None:
        """Record that a run is started on a worker."""
        self.record(ev.Started(run=number_of(run)))

    def target(self, run: Run | int, until: int | None) -> None:
        """Record the step at which a run is to pause, ``None`` for its end; a
        paused run is queued again.

        Raises:
            NasboError: it has ended, or it has paused at that step or beyond.
        """
        known = self.history.run(number_of(run))
        if not known.is_open and not known.is_paused:
            raise NasboError(f"run {known.number} has ended: it is {known.state}")
        if until is not None and until <= known.step:
            raise NasboError(f"until > {known.step} must hold for run {known.number}, got {until}")
        self.record(ev.Targeted(run=known.number, until=until))

    def promote(self, *promotions: Promotion) -> None:
        """Record, in one transaction, that paused runs continue to their next rungs."""
        self.record(*(one.event for one in promotions))

    def open_round(self, n: int) -> list[Trial]:
        """Let the method decide on ``n`` trials and record them; none is started."""
        self.set_reference()
        return self.add_round(*self.decide(n))

    def set_reference(self) -> None:
        """Record the reference point of several objectives, if the design has ended."""
        self.record(*due_reference(self.history, self._features))

    def decide(self, n: int) -> tuple[list[Suggestion], float]:
        """What the method would suggest next, and the seconds that it took; nothing is recorded."""
        begin = time.perf_counter()
        # Matrices are small: threads cost more than they gain, and their number would affect the
        # last digits.
        with nullcontext() if self.is_quick else threadpool_limits(1):
            return self._method.suggest(self.history, n), time.perf_counter() - begin

    @property
    def is_quick(self) -> bool:
        """Whether the method decides instantly."""
        return self._method.is_quick

    def add_round(
        self,
        suggestions: list[Suggestion],
        seconds: float,
        unseen: Sequence[int] | None = None,
        promotions: Sequence[Promotion] = (),
    ) -> list[Trial]:
        """Record a round that was decided elsewhere, in one transaction.

        Args:
            suggestions: the decision.
            seconds: duration of the decision.
            unseen: runs whose results the decision did not see; by default those open now.
            promotions: paused runs that continue in the same round.
        """
        if not suggestions:
            return []
        opened, new = round_events(self.history, suggestions, seconds, unseen)
        self.record(*(one.event for one in promotions), opened, *new)
        return [self.history.trial(one.trial) for one in new]

    def tell(
        self,
        trial: Trial | Run | int,
        value: float | Mapping[str, Any] | None = None,
        *,
        error: str | None = None,
        metrics: Mapping[str, Any] | None = None,
        message: str = "",
        step: int = 0,
    ) -> None:
        """Record how a trial ended: with a value, or with an error cause.

        A non-finite value counts as ``error="diverged"``. ``error="stopped"`` may come with the
        trial's last value. A trial with a target step that is not told beyond that step is paused
        there. Numbers that were known before are filled in: a search for accuracy and size is told
        ``{"val_accuracy": 0.91}``.

        Args:
            trial: a trial from ``ask``, one of its runs, or the number of either.
            value: of the first objective, or numbers by name.
            error: one of ``CAUSES``.
            metrics: further results, and further trained objectives.
            message: explanation of the ending.
            step: step at which it ended.

        Raises:
            NasboError: no such trial, or it was told before, or an objective is missing.
        """
        number, goal = self._open_number(trial), self.history.objectives
        known = known_numbers(goal, self._features, self.history.trial(number).config)
        first, filled = told_values(goal, value, metrics, known, error is None)
        ending, found = ending_of(first, error)
        until = self.history.run(number).until
        if ending is Ending.FINISHED and until is not None and step <= until:
            ending, step = Ending.PAUSED, step or until
        self.record(
            ev.Ended(
                run=number,
                ending=ending,
                value=found,
                metrics=json_safe(filled),
                step=step,
                message=message,
            )
        )

    def answer(self, trial: Trial | Run | int, twin: Trial) -> None:
        """End a trial with the result of another trial that trained the same network."""
        first = twin.id if twin.twin is None else twin.twin
        self.record(
            ev.Ended(
                run=self._open_number(trial),
                ending=Ending.FINISHED,
                value=twin.value,
                metrics=dict(twin.metrics),
                step=twin.step,
                message=f"the same network as trial {first}",
                twin=first,
            )
        )

    def repeat(self, *trials: Trial) -> list[Run]:
        """Train the configs of trials again, with other seeds.

        The new runs do not count towards the budget; their values enter the means of their trials.
        """
        for trial in trials:
            if trial.state == "failed":
                raise NasboError(f"a trial that failed is not repeated: {trial.id}")
        first = self.history.n_runs
        new = [ev.Repeated(trial=t.id, run=number) for number, t in enumerate(trials, start=first)]
        self.record(*new)
        return [self.history.run(one.run) for one in new]

    def requeue(self, trial: Trial | Run | int, cause: str, message: str = "") -> None:
        """Record that a run broke off and will be started again under its own number."""
        number = self._open_number(trial)
        self.record(ev.Requeued(run=number, ending=Ending.of(cause), message=message))

    def lacking(self, trial: Trial | Run | int, metrics: Mapping[str, Any]) -> list[str]:
        """The objectives behind the first one that metrics and known numbers do not tell."""
        config = self.history.trial(number_of(trial)).config
        goal = self.history.objectives
        return goal.lacking({**metrics, **known_numbers(goal, self._features, config)})

    def observe(
        self,
        config: Config,
        value: float | Mapping[str, Any],
        origin: str = "",
        is_comparable: bool = True,
    ) -> None:
        """Add a result from elsewhere, which counts towards its subspace's design.

        Args:
            config: a config of the space.
            value: of the first objective, or numbers by name.
            origin: name of the past sweep that it comes from.
            is_comparable: whether it may be the best; if not, only the surrogate uses it.
        """
        config, goal = self.space.canonical(config), self.history.objectives
        known = known_numbers(goal, self._features, config)
        value, metrics = told_values(goal, value, None, known, is_finished=True)
        value = finite_value_of(value)
        self.record(
            ev.Observed(
                trial=self.history.n_runs,
                config=config,
                subspace=self.space.subspace_of(config).index,
                value=value,
                origin=origin,
                is_comparable=is_comparable,
                metrics=json_safe(metrics),
            )
        )

    def report(
        self, trial: Trial | Run | int, step: int, value: float | None, metrics: Mapping[str, Any]
    ) -> None:
        """Record the progress of a running trial; without fsync, as a
        restarted trial reports again.
        """
        measured = ev.Reported(
            run=self._open_number(trial),
            step=step,
            value=json_safe(value),
            metrics=json_safe(metrics),
        )
        self.record(measured, sync=False)

    def ranked(self, by: By = "estimate") -> list[Trial]:
        """Copies of the trials with a value, best first.

        Args:
            by: ``estimate`` of the noise-free value, if the method has found noise, or the
                ``observed`` value.
        """
        return [trial.copy() for trial in self.history.ranked(by)]

    @property
    def best(self) -> Trial:
        """The finished trial with the best value; under noise, the one expected to be best."""
        if (best := self.history.best) is None:
            raise NasboError("nothing has finished yet")
        return best.copy()

    @property
    def front(self) -> list[Trial]:
        """The trials that no other one dominates, best value of the first objective first."""
        return [trial.copy() for trial in self.history.front]

    @property
    def trials(self) -> list[Trial]:
        """Copies of all trials so far."""
        return [trial.copy() for trial in self.history.trials]

    def is_known(self, config: Config) -> bool:
        """Whether a config was suggested or observed before."""
        return config_key(self.space.canonical(config)) in self.history.keys

    def record(self, *events: ev.Event, sync: bool = True) -> None:
        """Write events to the journal, then apply them: what is known is on disk."""
        if events and self.journal:
            self.journal.append(*(item.to_json() for item in events), sync=sync)
        for item in events:
            self._apply(item)

    def _apply(self, item: ev.Event) -> None:
        self.history.apply(item)
        self.events.append(item)

    def close(self) -> None:
        """Release the journal for other processes."""
        if self.journal:
            self.journal.close()

    def __enter__(self) -> Search:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open_number(self, trial: Trial | Run | int) -> int:
        """The number of an open run; of a trial, its first open run."""
        number = number_of(trial)
        if not 0 <= number < self.history.n_runs:
            raise NasboError(f"there is no trial {number}")
        if isinstance(trial, Trial):
            known = self.history.trial(number)
            number = next((run.number for run in known.runs if run.is_open), number)
        if not self.history.is_open(number):
            state = self.history.run(number).state
            raise NasboError(f"trial {number} has been told before: it is {state}")
        return number


_ARGUMENTS = [name for name in inspect.signature(Search).parameters if name != "options"]
