"""A sweep's folder comes in; its trials run on Ray until the budget is used, and can be resumed.

Every start is a fresh Tuner that replays the journal: finished trials are data, unfinished ones
are run again first, under their own number, from their own checkpoint. Nothing depends on Tune's
own snapshots.
"""

from __future__ import annotations

import logging
import math
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ray import tune
from ray.tune import Stopper

from nasbo.errors import JournalError, SweepError
from nasbo.history import History, Trial, event
from nasbo.rounds import Schedule
from nasbo.search import Search
from nasbo.space import Space
from nasbo.sweep import JOURNAL_FILE, Sweep, read_history
from nasbo.trainer import Trainer, cause_of, load_trainer
from nasbo.tune.cluster import Capacity, connect
from nasbo.tune.searcher import NasboSearch
from nasbo.tune.trial import CAUSE, MESSAGE, VALUE, TrialTask, run_trial

logger = logging.getLogger(__name__)
MAX_PENDING = 4096


@dataclass(frozen=True)
class Outcome:
    """How a run ended: ``finished``, ``stopped`` (by a limit of its own) or ``interrupted``."""

    state: str
    history: History
    reason: str = ""


class SweepSearch(NasboSearch):
    """The searcher of a sweep: journal on disk, limits of its own, trials that need no training."""

    def __init__(self, sweep: Sweep, space: Space, folder: Path, trainer: Trainer) -> None:
        self._sweep, self._folder, self._trainer = sweep, folder, trainer
        self.reason = ""
        self.error: JournalError | None = None
        self._capacity = Capacity(sweep)
        self._fingerprints: dict[str, int] = {}
        super().__init__(
            space,
            metric=VALUE,
            mode=sweep.mode,
            method=sweep.method,
            method_options=sweep.method_options,
            seed=sweep.seed,
            schedule=sweep.schedule,
            batch=sweep.batch,
            share=sweep.share,
            deadline_s=sweep.deadline_s,
        )

    def _new_search(self, past: Any = ()) -> Search:
        sweep = self._sweep
        search = Search(
            self.space,
            sweep.method,
            sweep.mode,
            sweep.seed,
            journal=self._folder / JOURNAL_FILE,
            notes=sweep.notes(),
            **sweep.method_options,
        )
        budget = search.history.budget or sweep.trials
        self.schedule = Schedule(sweep.schedule, sweep.batch, sweep.share, sweep.deadline_s, budget)
        return search

    def extend(self, n_trials: int) -> None:
        """Set a new total of trials."""
        self.search.record(event("budget", trials=n_trials))
        self.schedule = Schedule(**{**vars(self.schedule), "budget": n_trials})
        self.rounds.schedule = self.schedule

    def slots(self) -> int:
        return self._capacity.slots()

    def __getstate__(self) -> dict[str, Any]:
        """What Tune pickles beside its own state; a sweep never comes back from there."""
        return {"_metric": self._metric, "_mode": self._mode}

    def suggest(self, trial_id: str) -> Any:
        return self.FINISHED if self.should_end() else super().suggest(trial_id)

    def should_end(self) -> bool:
        """Whether the run is to end although trials are still open."""
        if self.error is not None:
            self.reason = str(self.error)
        elif not self.reason and self._target_reached():
            self.reason = f"the value {self._sweep.stop_at} was reached"
        return bool(self.reason)

    def _target_reached(self) -> bool:
        history, target = self.search.history, self._sweep.stop_at
        if target is None or history.best is None or history.best.value is None:
            return False
        return history.score(history.best.value) >= history.score(target)

    def _on_journal_error(self, error: JournalError) -> Any:
        logger.error("%s", error)
        self.error = error
        return None

    def _tune_config(self, trial: Trial) -> dict[str, Any]:
        return {"trial": trial.id, "config": trial.copy().config}

    def _screen(self, trial: Trial) -> bool:
        """Invalid configs and known networks end here, without a worker."""
        try:
            if self._trainer.check:
                self._trainer.check(trial.config)
        except Exception as error:
            cause = cause_of(error)
            cause = "invalid" if cause == "crashed" else cause
            self.search.tell(trial, error=cause, message=f"{type(error).__name__}: {error}")
            return True
        return self._answer_known(trial)

    def _answer_known(self, trial: Trial) -> bool:
        if self._trainer.fingerprint is None:
            return False
        key = self._trainer.fingerprint(trial.config)
        twin = self.search.history.trials[self._fingerprints.setdefault(key, trial.id)]
        if twin.id == trial.id or twin.state != "finished":
            return False
        same = f"the same network as trial {twin.id}"
        self.search.tell(trial, twin.value, metrics=twin.metrics, step=twin.step, message=same)
        return True

    def _complete(self, trial_id: str, result: dict[str, Any] | None, error: bool) -> None:
        if self.should_end() and not (result or {}).get("done"):
            self._trials.pop(trial_id, None)  # ended by us: stays open and is resumed
            return
        super()._complete(trial_id, result, error)

    def _ending(
        self, result: dict[str, Any] | None, error: bool, last_seen: int
    ) -> tuple[float | None, str | None]:
        if error:
            return None, "lost"
        if result and result.get(CAUSE):
            return None, str(result[CAUSE])
        return super()._ending(result, error, last_seen)

    def _message(self, result: dict[str, Any]) -> str:
        return str(result.get(MESSAGE) or "")


class _Limits(Stopper):
    """Ends the run, with its trials still open, when the searcher or the clock says so."""

    def __init__(self, searcher: SweepSearch, time_limit_s: float | None) -> None:
        self.searcher = searcher
        self.deadline = None if time_limit_s is None else time.monotonic() + time_limit_s

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        if self.deadline is not None and time.monotonic() >= self.deadline:
            self.searcher.reason = self.searcher.reason or "the time limit was reached"
        return self.searcher.should_end()

    def __getstate__(self) -> dict[str, Any]:
        return {}


def run_sweep(
    folder: Path,
    sweep: Sweep,
    space: Space,
    n_trials: int | None = None,
    watch: Callable[[History], Any] | None = None,
) -> Outcome:
    """Run or continue a sweep.

    Args:
        folder: the sweep's folder, made by ``create_folder``.
        sweep: its settings.
        space: its space.
        n_trials: a new total of trials.
        watch: called with the history about twice a second, in a thread of its own.

    Raises:
        SweepError: the trainer, the cluster or the folder cannot be used.
        JournalError: another process runs the sweep, or its journal is damaged.
    """
    trainer = load_trainer(sweep.trainer, sweep.working_folder or None)
    searcher = SweepSearch(sweep, space, folder, trainer)
    try:
        if n_trials is not None and n_trials != searcher.schedule.budget:
            searcher.extend(n_trials)
        if searcher.search.history.n_suggested == 0:
            _warm_start(searcher.search, sweep)
        with connect(sweep), _Watch(searcher.search.history, watch):
            _fit(searcher, sweep, folder, trainer)
        return _outcome(searcher)
    finally:
        searcher.search.close()


def _fit(searcher: SweepSearch, sweep: Sweep, folder: Path, trainer: Trainer) -> None:
    """One Tuner from beginning to end, in the main thread so that Ctrl-C reaches it."""
    task = TrialTask(
        folder=str(folder.resolve()),
        trainer=sweep.trainer,
        metric=sweep.metric or trainer.metric,
        seed=sweep.seed,
        options=sweep.trainer_options,
        working_folder=sweep.working_folder,
    )
    resources = {"CPU": sweep.cpus_per_trial, "GPU": sweep.gpus_per_trial}
    tuner = tune.Tuner(
        tune.with_resources(
            tune.with_parameters(run_trial, task=task),
            {name: amount for name, amount in resources.items() if amount},
        ),
        tune_config=tune.TuneConfig(
            search_alg=searcher,
            num_samples=-1,
            max_concurrent_trials=MAX_PENDING,
            reuse_actors=True,
            trial_name_creator=lambda trial: f"trial_{trial.config['trial']:05d}",
            trial_dirname_creator=lambda trial: f"trial_{trial.config['trial']:05d}",
        ),
        run_config=tune.RunConfig(
            name=time.strftime("run_%Y%m%d_%H%M%S") + f"_{os.getpid()}",
            storage_path=str((folder / ".tune").resolve()),
            stop=_Limits(searcher, sweep.time_limit_s),
            failure_config=tune.FailureConfig(max_failures=sweep.max_failures),
            verbose=0,
        ),
    )
    try:
        with _terminate_as_interrupt():
            tuner.fit()
    finally:
        searcher.close()
        shutil.rmtree(folder / ".tune", ignore_errors=True)  # the journal is all that is needed


def _outcome(searcher: SweepSearch) -> Outcome:
    if searcher.error is not None:
        raise searcher.error
    history = searcher.search.history
    if searcher.reason:
        return Outcome("stopped", history, searcher.reason)
    if searcher.rounds.is_done and not history.open_trials:
        return Outcome("finished", history)
    return Outcome("interrupted", history, "it was interrupted")


def _warm_start(search: Search, sweep: Sweep) -> None:
    """Take in the finished trials of another sweep that belong to this space."""
    if sweep.warm_start is None:
        return
    _, past = read_history(Path(sweep.warm_start))
    n_taken = 0
    for trial in past.trials:
        if trial.state != "finished" or trial.value is None or not math.isfinite(trial.value):
            continue
        try:
            search.observe(trial.config, trial.value)
            n_taken += 1
        except Exception as error:
            logger.info("warm start leaves out trial %s: %s", trial.id, error)
    if not n_taken:
        raise SweepError(f"{sweep.warm_start}: no finished trial belongs to this space")


class _Watch:
    """Calls the display from a thread of its own, as the main thread belongs to Tune."""

    def __init__(self, history: History, watch: Callable[[History], Any] | None) -> None:
        self._history, self._watch = history, watch
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def _loop(self) -> None:
        assert self._watch is not None
        while not self._end.wait(0.5):
            self._watch(self._history)

    def __enter__(self) -> None:
        if self._watch:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._end.set()
        if self._watch:
            self._thread.join()
            self._watch(self._history)


class _terminate_as_interrupt:  # noqa: N801
    """SIGTERM ends a run as Ctrl-C does; Tune itself would abort."""

    def __enter__(self) -> None:
        self._is_main = threading.current_thread() is threading.main_thread()
        if self._is_main:
            self._before = signal.signal(signal.SIGTERM, _interrupt)

    def __exit__(self, *_: object) -> None:
        if self._is_main:
            signal.signal(signal.SIGTERM, self._before)


def _interrupt(number: int, frame: object) -> None:
    os.kill(os.getpid(), signal.SIGUSR1)
