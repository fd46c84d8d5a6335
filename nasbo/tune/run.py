"""Runner of a sweep on Ray Tune, which also resumes it.

Every start is a new Tuner that replays the journal: finished trials are data; unfinished ones run
first, under their own number and from their own checkpoint. Tune's snapshots are not used.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.tune import Stopper

from nasbo.history import History
from nasbo.search import Search, StoppingRule
from nasbo.search.begin import has_only_begun
from nasbo.search.stopping import TO_THE_END
from nasbo.space import Space
from nasbo.storage.mirror import location_of
from nasbo.sweeps.callbacks import load_callbacks
from nasbo.sweeps.job import job_metadata, sweep_name
from nasbo.sweeps.past import read_past
from nasbo.sweeps.settings import Sweep
from nasbo.sweeps.signals import terminate_as_interrupt
from nasbo.trainer import Trainer, load_trainer
from nasbo.tune.cluster import connect, is_shipped
from nasbo.tune.controller import patient_tune
from nasbo.tune.metrics import SweepMetrics
from nasbo.tune.names import named_trainable
from nasbo.tune.observers import CallbackThread, Observers, ObserverThread
from nasbo.tune.sweep_search import SweepSearch
from nasbo.tune.trial import TrialTask, run_trial

MAX_PENDING = 4096
NOBODY = Observers()


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    ``finished`` (the budget is used), ``stopped`` (by a limit of its own), ``interrupted`` (by a
    signal), ``failed`` (too many failures in a row) or ``lost`` (Ray or the disk is gone).
    """

    state: str
    history: History
    reason: str = ""


class _Errors(tune.Callback):
    """Passes the text of an error to the searcher, which Tune only tells that there was one."""

    def __init__(self, searcher: SweepSearch) -> None:
        self.searcher = searcher

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        file = Path(trial.error_file or os.devnull)  # Tune writes it just before
        self.searcher.on_error(trial.trial_id, file.read_text(encoding="utf-8"))

    def __getstate__(self) -> dict[str, Any]:
        return {}


class _Limits(Stopper):
    """Ends the run, with trials still open, at the time limit or when the searcher wants it."""

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
    observers: Observers = NOBODY,
    stopping: StoppingRule = TO_THE_END,
) -> Outcome:
    """Run or continue a sweep.

    Args:
        folder: the sweep's folder, made by ``create_folder``.
        sweep: its settings.
        space: its space.
        n_trials: a new total number of trials.
        observers: observers of the run.
        stopping: rule for how far trials are trained.

    Raises:
        SweepError: the trainer, the cluster or the folder cannot be used.
        JournalError: another process runs the sweep, or its journal is damaged.
    """
    trainer = load_trainer(sweep.trainer, sweep.working_folder or None)
    callbacks = load_callbacks(sweep, folder)
    searcher = SweepSearch(sweep, space, folder, trainer, stopping)
    try:
        if n_trials is not None and n_trials != searcher.driver.schedule.budget:
            searcher.extend(n_trials)
        if has_only_begun(searcher.search.history):
            _warm_start(searcher.search, sweep)
        metadata = job_metadata(folder, sweep, observers.report_url)
        # Ray installs its own SIGTERM handler when it connects: install ours again.
        with (
            terminate_as_interrupt(),
            connect(sweep, metadata) as words,
            terminate_as_interrupt(),
            _watched(searcher, sweep, folder, observers),
            CallbackThread(searcher.search.history, callbacks),
        ):
            if words and observers.tell:
                observers.tell(words)
            _fit(searcher, sweep, folder, trainer)
        if observers.tell and (failures := callbacks.words()):
            observers.tell(failures)
        return _outcome(searcher)
    except KeyboardInterrupt:
        return Outcome("interrupted", searcher.search.history)
    finally:
        searcher.search.close()


def _fit(searcher: SweepSearch, sweep: Sweep, folder: Path, trainer: Trainer) -> None:
    """Run one Tuner, in the main thread so that Ctrl-C reaches it."""
    location = location_of(folder)
    task = TrialTask(
        folder=str(folder.resolve()),
        sweep=replace(
            sweep,
            metric=sweep.metric or trainer.metric,
            working_folder="" if is_shipped() else sweep.working_folder,
        ),
        is_metric_late=_is_metric_late(sweep, trainer),
        url=location.url if location else "",
        board=searcher.open_board(),
    )
    tuner = tune.Tuner(
        named_trainable(
            tune.with_parameters(run_trial, task=task),
            sweep_name(folder),
            sweep.trainer,
            sweep.needs,
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
            failure_config=tune.FailureConfig(max_failures=0),  # the searcher decides on retries
            callbacks=[_Errors(searcher)],
            verbose=0,
        ),
    )
    try:
        with patient_tune():
            tuner.fit()
    except (ray.exceptions.RayError, tune.TuneError, ConnectionError) as error:
        searcher.state, searcher.reason = "lost", f"Ray went away: {error}"[:300]
    finally:
        searcher.close()
        shutil.rmtree(folder / ".tune", ignore_errors=True)  # the journal is all that is needed


def _is_metric_late(sweep: Sweep, trainer: Trainer) -> bool:
    """Whether the metric is that of final trainings, which may come only with the last report."""
    if trainer.final_metric is None or sweep.metric in (None, trainer.metric):
        return False
    return sweep.metric == trainer.final_metric(sweep.trainer_options)


def _watched(
    searcher: SweepSearch, sweep: Sweep, folder: Path, observers: Observers
) -> ObserverThread:
    """The thread of the observers and the Prometheus metrics."""
    metrics = SweepMetrics(sweep_name(folder), sweep, searcher.slots)
    return ObserverThread(searcher.search.history, searcher.note, (*observers.observers, metrics))


def _outcome(searcher: SweepSearch) -> Outcome:
    history = searcher.search.history
    if searcher.error is not None:
        return Outcome("lost", history, str(searcher.error))
    if searcher.reason:
        return Outcome(searcher.state, history, searcher.reason)
    if searcher.driver.is_done and not history.open_numbers:
        return Outcome("finished", history)
    return Outcome("interrupted", history)


def _warm_start(search: Search, sweep: Sweep) -> None:
    """Observe the finished trials of another sweep that fit this space."""
    start = read_past(sweep, search.space)
    start.require_results()
    if start.past is None:
        return
    if start.past.digest not in {past.digest for past in search.history.past}:
        search.record(start.past)
    for config, value in start.results:
        if not search.is_known(config):  # an earlier start may have been interrupted
            search.observe(config, value, start.past.name, start.is_comparable)
