"""One trial in a Ray worker: runs the trainer and reports its results and ending to Tune."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import tempfile
import traceback
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray import tune

from nasbo.history import Objective
from nasbo.limits import numbers_of
from nasbo.search import Verdict
from nasbo.space import Config
from nasbo.storage.location import Location
from nasbo.storage.trial_files import TrialFiles
from nasbo.sweeps.folder import ERROR_FILE, trial_folder, trial_name
from nasbo.sweeps.policies import CHECKPOINTS, remove_file
from nasbo.sweeps.settings import Sweep
from nasbo.trainer import DATA, Trainer, cause_of, load_trainer
from nasbo.tune.log import printed_to
from nasbo.tune.preparation import prepare_node
from nasbo.tune.results import STEP
from nasbo.tune.verdicts import Board
from nasbo.tune.watchdog import Watchdog

logger = logging.getLogger(__name__)
TIMEOUT_FILE, WORKER_FILE = "timeout.txt", "worker.json"


def _home() -> str:
    """Working directory of the worker at start, from which Tune moves away:
    the shipped one, if any.
    """
    try:
        return os.getcwd()
    except FileNotFoundError:  # a second node of this host has just unpacked it again
        return os.environ["PWD"]


HOME = _home()
VALUE, CAUSE, MESSAGE = "nasbo_value", "nasbo_cause", "nasbo_message"
GIVEN = "nasbo_given"
"""Names of the results that a trainer gave instead of the metric."""
OBEYED = {Verdict.PAUSE: "paused", Verdict.STOP: "stopped"}
"""Causes for trials whose trainer returned after a verdict to pause or stop."""


@dataclass(frozen=True)
class TrialTask:
    """Data that all trials of a sweep share.

    Attributes:
        folder: of the sweep.
        sweep: its settings; the metric is the trainer's own if the sweep names none.
        is_metric_late: whether only the last report contains the metric.
        url: of the sweep's bucket; "" for none.
        board: board that is polled after each report; ``None`` if no verdicts are given.
    """

    folder: str
    sweep: Sweep
    is_metric_late: bool = False
    url: str = ""
    board: Board | None = None


@dataclass(frozen=True)
class Stretch:
    """The part of its training that a trial does now: the first step, and where it must pause."""

    step: int = 0
    until: int | None = None


WHOLE = Stretch()


def _open_files(task: TrialTask, number: int) -> TrialFiles | None:
    """The trial's files if the sweep is on object storage, with a local scratch folder."""
    if not task.url:
        return None
    key = hashlib.sha256(task.url.encode()).hexdigest()[:12]
    scratch = Path(tempfile.gettempdir()) / f"nasbo-{os.getuid()}" / key / trial_name(number)
    return TrialFiles(Location(task.url), trial_name(number), scratch)


class TuneSession:
    """Session for a trainer in a Ray worker.

    Attributes:
        n_out_of_memory: how often this trial has run out of memory, so that a trainer can use less.
        until: the step at which the trial is to pause; ``None`` for a training to its end.
        is_broken_off: whether Tune has ended the trial at a report, as the sweep ends.
        known: numbers that were known before the training, for a metric that is an expression.
    """

    def __init__(
        self,
        task: TrialTask,
        number: int,
        n_out_of_memory: int = 0,
        stretch: Stretch = WHOLE,
    ) -> None:
        self._files = _open_files(task, number)
        self.folder = self._files.folder if self._files else trial_folder(task.folder, number)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / TIMEOUT_FILE).unlink(missing_ok=True)  # from an earlier attempt
        self.seed = zlib.crc32(f"{task.sweep.seed}/{number}".encode())
        self.options: Mapping[str, Any] = task.sweep.trainer_options
        self.n_out_of_memory = n_out_of_memory
        self.step, self.until, self._board = stretch.step, stretch.until, task.board
        self.known: Mapping[str, float] = {}
        self._last: dict[str, Any] | None = None
        self._told, self.is_broken_off = Verdict.GO_ON, False
        self._metric, self._is_metric_late = task.sweep.metric, task.is_metric_late
        store, timeout_s = self._store_last if self._files else None, task.sweep.report_timeout_s
        self._watchdog = Watchdog(self.folder / TIMEOUT_FILE, timeout_s, store)

    def report(self, metrics: dict[str, float], step: int | None = None) -> bool:
        """Report the metrics to Tune, with the optimised value under its own key."""
        if self._told is not Verdict.GO_ON:  # a trainer that reports again has ignored the verdict
            raise TrainingEnded(f"told to {self._told.value} at step {self.step}")
        self.step = self.step + 1 if step is None else step
        self._tell(self._valued(metrics))
        self._told = self._verdict()
        return self._told is Verdict.GO_ON

    def _verdict(self) -> Verdict:
        if self.until is not None and self.step >= self.until:
            return Verdict.PAUSE
        if self._board is None:
            return Verdict.GO_ON
        return self._board.take(tune.get_context().get_trial_id())

    @property
    def has_checkpoint(self) -> bool:
        """Whether an earlier attempt has left files ``checkpoint*``."""
        return any(self.folder.glob(CHECKPOINTS))

    @property
    def is_silent(self) -> bool:
        """Whether the trainer has reported nothing."""
        return self._last is None

    def begin_again(self) -> None:
        """Remove the checkpoints; steps are counted from the start."""
        for file in self.folder.glob(CHECKPOINTS):
            remove_file(file)
        self.step = 0

    def conclude(self, result: Any) -> None:
        """Report what the trainer returned to Tune, after its last files are stored.

        A trainer that obeyed a verdict has paused or was stopped, unless it diverged.
        """
        returned = None if result is None else self._valued(result)
        last = returned or self._last
        if last is None:
            raise MissingMetricError("the trainer neither reported nor returned anything")
        (self.folder / ERROR_FILE).unlink(missing_ok=True)  # from an earlier attempt
        is_told = self._told is not Verdict.GO_ON
        if is_told and (math.isfinite(last[VALUE]) or self._is_early(last)):
            self._tell({**last, CAUSE: OBEYED[self._told]})
        elif returned is not None:
            self.step += 1
            self._tell(returned)
        else:
            self.store()

    def _valued(self, result: Any) -> dict[str, Any]:
        """Results with the optimised value."""
        if not isinstance(result, Mapping):
            return {VALUE: pick_value(result, None)}
        value = math.nan if self._is_early(result) else self._picked(result)
        return {**result, VALUE: value}

    def _picked(self, result: Mapping[str, Any]) -> float:
        return pick_value(result, self._metric, self.known)

    def _is_early(self, metrics: Mapping[str, Any]) -> bool:
        return self._is_metric_late and self._metric not in metrics

    def _tell(self, result: dict[str, Any]) -> None:
        self._last = result
        with self._watchdog.paused():  # the driver's time does not count
            self.store()
            try:
                tune.report({**result, STEP: self.step})
            except SystemExit:  # Tune's way to end the thread
                self.is_broken_off = True
                raise

    def store(self) -> None:
        """Upload the folder to the bucket, if the sweep has one."""
        if self._files is not None:
            try:
                self._files.store()
            except OSError as error:
                raise BucketError(f"the trial's files cannot be stored: {error}") from error

    def close(self) -> None:
        """Delete the scratch folder of this node, if the sweep has a bucket."""
        if self._files is not None:
            self._files.remove()

    def _store_last(self) -> None:
        try:
            self.store()
        finally:
            self.close()

    def __enter__(self) -> TuneSession:
        self._watchdog.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._watchdog.stop()


class TrainingEnded(BaseException):
    """Ends a trainer that ignores a verdict and reports again.

    It is not an ``Exception``, so a trainer that handles its errors does not catch it.
    """


class BucketError(RuntimeError):
    """Object storage could not be written: not the config's fault."""

    cause = "lost"


class MissingMetricError(LookupError):
    """A trainer's result does not contain the metric of the sweep.

    Args:
        message: what is missing.
        given: names of the results that exist instead.
    """

    cause = "no result"

    def __init__(self, message: str, given: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.given = tuple(given)


def pick_value(result: Any, metric: str | None, known: Mapping[str, float] | None = None) -> float:
    """The optimised value, from what a trainer returned or reported.

    Args:
        result: numbers by name, or one number.
        metric: name of a number, or an expression.
        known: numbers that were known before, for an expression.
    """
    if not isinstance(result, Mapping):
        return _as_number(result, "the trainer's result")
    if metric is None and len(result) == 1:
        metric = next(iter(result))
    if metric is not None and metric not in result:
        value = Objective(metric).value_in({**result, **(known or {})})
        if value is not None:
            return value
    if metric is None or metric not in result:
        given = list(map(str, result))
        wanted = f"the metric {metric!r}" if metric else "--metric NAME"
        told = ", ".join(given) or "nothing"
        raise MissingMetricError(f"{wanted} is needed; the trainer gave {told}", given)
    return _as_number(result[metric], f"the metric {metric!r}")


def _as_number(value: Any, what: str) -> float:
    try:
        if isinstance(value, str | bytes | bool):
            raise TypeError
        return float(value)
    except (TypeError, ValueError) as error:
        raise MissingMetricError(f"{what} must be a number, got {type(value).__name__}") from error


def hide_gpus() -> None:
    """Hide all GPUs from this process if its trial was granted none; Ray
    would show it all of them.
    """
    if not ray.get_gpu_ids():
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


def run_trial(config: dict[str, Any], task: TrialTask) -> None:
    """The function that Tune runs: ``config`` contains the trial's number and its config.

    Exceptions of the trainer are reported as an ending with a cause, so that for Tune only the
    death of a process is an error.
    """
    stretch = Stretch(config["step"], config["until"])
    session = TuneSession(task, config["trial"], config["n_out_of_memory"], stretch)
    try:
        with printed_to(session.folder):
            _train(config, task, session)
    finally:
        session.close()


def _result(trainer: Trainer, config: Config, session: TuneSession) -> Any:
    """What the trainer returns; ``None`` if it had to be ended.

    A trainer that resumes may find its training complete and say nothing, where its process was
    killed between the last checkpoint and its report. What the checkpoint was worth is not known
    then: it is removed, and the config trained from the start.
    """
    had_checkpoint = trainer.resumes and session.has_checkpoint
    result = _call(trainer, config, session)
    if result is None and session.is_silent and had_checkpoint:
        logger.warning("a complete checkpoint whose value is lost: training begins again")
        session.begin_again()
        result = _call(trainer, config, session)
    return result


def _call(trainer: Trainer, config: Config, session: TuneSession) -> Any:
    try:
        return trainer(config, session)
    except TrainingEnded:
        return None


def _known_numbers(config: Config, task: TrialTask, trainer: Trainer) -> Mapping[str, float]:
    """Numbers of the trainer's summary, if the metric is an expression that may need them."""
    metric = task.sweep.metric
    if metric is None or Objective(metric).names == (metric,):
        return {}
    return numbers_of(trainer.describe(config, task.sweep.trainer_options))


def _train(config: dict[str, Any], task: TrialTask, session: TuneSession) -> None:
    worker = {"node": ray.get_runtime_context().get_node_id(), "pid": os.getpid()}
    (session.folder / WORKER_FILE).write_text(json.dumps(worker), encoding="utf-8")
    hide_gpus()
    try:
        session.store()
        trainer = load_trainer(task.sweep.trainer, task.sweep.working_folder or HOME)
        prepare_node(trainer, task.sweep.trainer_options)
        session.known = _known_numbers(config["config"], task, trainer)
        with session:
            session.conclude(_result(trainer, config["config"], session))
    except (Exception, SystemExit) as error:
        if session.is_broken_off:  # nothing is wrong: a resume goes on with it
            raise SystemExit(0) from error
        with suppress(OSError, BucketError):  # the disk may be the problem
            (session.folder / ERROR_FILE).write_text(traceback.format_exc(), encoding="utf-8")
            session.store()
        cause = cause_of(error)
        size = 2000 if cause == DATA else 500  # advice about data takes several lines
        message = f"{type(error).__name__}: {error}"[:size]
        if isinstance(error, SystemExit):
            message = f"the trainer called sys.exit({error.code!r})"
        given = ", ".join(error.given) if isinstance(error, MissingMetricError) else ""
        ended = {VALUE: math.nan, CAUSE: cause, MESSAGE: message, GIVEN: given}
        tune.report({**ended, STEP: session.step + 1})
