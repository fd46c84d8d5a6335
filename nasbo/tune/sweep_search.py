"""Searcher of a sweep: translates Tune's calls and Ray's errors for the driver."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ray.tune.search import Searcher

from nasbo.errors import JournalError
from nasbo.history import Run, Trial
from nasbo.history.events import Budget
from nasbo.methods import Suggestion, design_size
from nasbo.search import (
    Driver,
    LocalDecider,
    Next,
    Policies,
    Schedule,
    Search,
    StoppingRule,
    Verdict,
)
from nasbo.search.retries import RetryPolicy
from nasbo.search.stopping import TO_THE_END
from nasbo.space import Space
from nasbo.storage.mirror import location_of, open_journal
from nasbo.storage.trial_files import fetch_files
from nasbo.sweeps.folder import trial_folder, trial_name
from nasbo.sweeps.job import sweep_name
from nasbo.sweeps.policies import Checkpoints, FailuresInARow, PausedCheckpoints, Screening
from nasbo.sweeps.settings import Sweep, features_of, limits_of
from nasbo.sweeps.valueless import UNJUDGED
from nasbo.trainer import DATA, Trainer
from nasbo.tune.cluster import Capacity
from nasbo.tune.endings import cause_of_loss, is_storage_error
from nasbo.tune.remote_method import MethodRecipe, RemoteDecider
from nasbo.tune.results import finite_number, own_metrics, step_of
from nasbo.tune.searcher import random_suggestions
from nasbo.tune.trial import CAUSE, GIVEN, MESSAGE, OBEYED, TIMEOUT_FILE, VALUE, WORKER_FILE
from nasbo.tune.verdicts import Board

logger = logging.getLogger(__name__)
MAX_LOSSES_IN_A_ROW = 50
MAX_SILENT = 3
"""Number of trials without any result after which a sweep ends if no trial has had one."""


class SweepSearch(Searcher):
    """Holds the driver of a sweep, and ends the sweep if it cannot continue.

    Attributes:
        reason: why the run is to end before the budget is used; "" while it continues.
        state: resulting state of the run: ``stopped``, ``failed`` or ``lost``.
        error: error of a journal that cannot be written.
    """

    def __init__(
        self,
        sweep: Sweep,
        space: Space,
        folder: Path,
        trainer: Trainer,
        stopping: StoppingRule = TO_THE_END,
    ) -> None:
        super().__init__(metric=VALUE, mode=sweep.mode)
        self._sweep, self._folder, self._trainer = sweep, folder, trainer
        self._stopping = stopping
        self._board: Board | None = None
        self.reason, self.state = "", "stopped"
        self.error: JournalError | None = None
        self._losses_in_a_row = 0
        self._trials: dict[str, int] = {}
        self._capacity = Capacity(sweep)
        self._limits, self._features = limits_of(sweep), features_of(sweep, space)
        begin = sweep.begin if isinstance(sweep.begin, list) else []
        goal = {"objectives": sweep.objectives} if sweep.objectives else {"mode": sweep.mode}
        self.search = Search(
            space,
            sweep.method,
            seed=sweep.seed,
            journal=open_journal(folder),
            notes=sweep.notes(),
            rungs=trainer.rungs(sweep.rungs, sweep.eta, sweep.trainer_options),
            limits=self._limits,
            features=self._features,
            begin=begin,
            **goal,
            **sweep.method_options,
        )
        self._screening = Screening(self.search, sweep, trainer, self._limits)
        self._failures = FailuresInARow(sweep.max_failures_in_a_row, self._n_design())
        self._checkpoints = Checkpoints(folder, self.search.history, sweep.keep_checkpoints)
        self._paused_checkpoints = PausedCheckpoints(folder, self.search, sweep.keep_paused)
        self._decider = RemoteDecider(self._recipe, self._random)
        self.driver = self._make_driver()

    def _n_design(self) -> int:
        """Size of the design; unlimited if a trial has had a value: then the trainer works."""
        history = self.search.history
        if history.has_own_result or any(trial.curve for trial in history.suggested):
            return sys.maxsize
        return design_size(history.space, None, len(history.objectives))

    def _make_driver(self) -> Driver:
        sweep = self._sweep
        budget = self.search.history.budget or sweep.trials
        schedule = Schedule(sweep.schedule, sweep.batch, sweep.share, sweep.deadline_s, budget)
        policies = Policies(
            screens=(self._refuse, self._screening.answer),
            cost=self._cost,
            retry=RetryPolicy(sweep.max_failures),
            ended=(self._failures, self._checkpoints, self._paused_checkpoints),
            stopping=self._stopping,
        )
        decider = LocalDecider() if self.search.is_quick else self._decider
        return Driver(self.search, schedule, decider, policies)

    def _refuse(self, run: Run) -> bool:
        is_refused = self._screening.refuse(run)
        if is_refused:
            self.driver.settle(run.number)
        return is_refused

    def _cost(self, trial: Trial) -> float:
        """Floating-point operations, if the trainer's ``summary`` has them."""
        try:
            options = self._sweep.trainer_options
            return float(self._trainer.describe(trial.config, options).get("flops", 0.0))
        except Exception as error:  # a user's function may raise anything
            logger.info("no cost known for trial %s: %s", trial.id, error)
            return 0.0

    def _recipe(self) -> MethodRecipe:
        sweep = self._sweep
        return MethodRecipe(
            self.search.space,
            sweep.mode,
            sweep.method,
            sweep.seed,
            sweep.method_options,
            sweep=sweep_name(self._folder),
            limits=self._limits,
            features=self._features,
        )

    def _random(self, n: int, reason: str) -> list[Suggestion]:
        return random_suggestions(self.search, self._sweep.seed, self._limits, n, reason)

    def extend(self, n_trials: int) -> None:
        """Set a new total number of trials."""
        self.search.record(Budget(trials=n_trials))
        self.driver.schedule = replace(self.driver.schedule, budget=n_trials)

    def slots(self) -> int:
        """Number of trials that can run at once."""
        return self._capacity.slots()

    def note(self) -> str:
        """A note for observers on the present state."""
        if self.slots() == 0:
            return "waiting for the cluster: no node has room for a trial"
        return "the method is deciding" if self.driver.is_deciding else ""

    # What Tune calls

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """Enforce the limit here: the searcher must see the results of a round as they come."""
        return True

    def suggest(self, trial_id: str) -> Any:
        """A run's number and config, ``None`` if there is none yet, or ``FINISHED``."""
        if self.should_end():
            return self.FINISHED
        try:
            return self._suggest(trial_id)
        except JournalError as error:
            self._fail(error)
        except Exception:
            logger.exception("no suggestion: the searcher failed")
        return None

    def _suggest(self, trial_id: str) -> Any:
        answer = self.driver.next(self.slots())
        if not isinstance(answer, Run):
            return Searcher.FINISHED if answer is Next.DONE else None
        self._trials[trial_id] = answer.number
        return {
            "trial": answer.number,
            "config": self.search.history.trial(answer.number).copy().config,
            "n_out_of_memory": answer.retries.get("oom", 0),
            "step": answer.resumed_from,
            "until": answer.until,
        }

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Record the progress of a running trial."""
        self._losses_in_a_row = 0
        self._guard(self._report, trial_id, result)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Record how a trial ended; errors are handled by ``on_error``."""
        if not error:
            self._guard(self._complete, trial_id, result or {})

    def on_error(self, trial_id: str, error_text: str) -> None:
        """A trial's process died without reporting a cause."""
        self._guard(self._break_off, trial_id, error_text)

    def save(self, checkpoint_path: str) -> None:
        """Write a stub: the journal is all that is needed, and Tune's snapshots are never used."""
        Path(checkpoint_path).write_text(json.dumps({"folder": str(self._folder)}))

    def restore(self, checkpoint_path: str) -> None:
        """Nothing to restore; see ``save``."""

    def __getstate__(self) -> dict[str, Any]:
        """State that Tune pickles with its own."""
        return {"_metric": self._metric, "_mode": self._mode}

    def open_board(self) -> Board | None:
        """Open the board for verdicts to running trials, if the stopping rule gives any."""
        if self._stopping.verdict is not None:
            self._board = Board(sweep_name(self._folder))
        return self._board

    def close(self) -> None:
        """End the processes of the method and the board."""
        self._decider.close()
        if self._board is not None:
            self._board.close()
            self._board = None

    # What follows

    def _guard(self, call: Any, *arguments: Any) -> None:
        """Call and log exceptions: an exception in Tune would end the run and kill every trial."""
        if self.error is not None:  # what the journal missed is done again after a resume
            return
        try:
            call(*arguments)
        except JournalError as error:
            self._fail(error)
        except Exception:
            logger.exception("the searcher could not take in a result")

    def _fail(self, error: JournalError) -> None:
        logger.error("%s", error)
        self.error = self.error or error

    def _report(self, trial_id: str, result: dict[str, Any]) -> None:
        number = self._trials.get(trial_id)
        if number is None or result.get(CAUSE) in OBEYED.values():  # a repeated report
            return
        value = finite_number(result.get(VALUE))
        verdict = self.driver.on_report(number, step_of(result), value, own_metrics(result))
        if self._board is not None and verdict is not Verdict.GO_ON:
            self._board.post(trial_id, verdict)

    def _complete(self, trial_id: str, result: dict[str, Any]) -> None:
        number = self._trials.pop(trial_id, None)
        if number is None:
            return
        if self.should_end() and not result.get("done"):
            self.driver.leave_open(number)  # stopped by the sweep: a resume continues it
            return
        cause, message = str(result.get(CAUSE) or ""), str(result.get(MESSAGE) or "")
        if cause == DATA:
            self._leave_open(number, f"the data cannot be used: {message}", "lost")
        elif cause == "no result" and self._lacks_values(result):
            self._leave_open(number, f"{UNJUDGED}: {message}", "failed")
        elif cause:
            self._end(number, cause, message, result)
        else:
            self._end_by_value(number, result)

    def _end_by_value(self, number: int, result: dict[str, Any]) -> None:
        raw = result.get(VALUE)
        value = finite_number(raw)
        cause = "no result" if raw is None else "diverged"
        lacking = self.search.lacking(number, own_metrics(result))
        if value is None:
            self._end(number, cause, "", result)
        elif lacking:
            message = f"the objective {lacking[0]!r} is needed; the trainer gave others"
            if self._lacks_values({GIVEN: VALUE}):
                self._leave_open(number, f"no trial can be judged: {message}", "failed")
            else:
                self._end(number, "no result", message, result)
        else:
            self.driver.on_end(number, value, metrics=own_metrics(result), step=step_of(result))

    def _end(self, number: int, cause: str, message: str, result: dict[str, Any]) -> None:
        if is_storage_error(message):  # stays open: run again when the disk works
            self._leave_open(number, f"{self._folder} cannot be written: {message}", "lost")
            return
        value = finite_number(result.get(VALUE))
        metrics, step = own_metrics(result), step_of(result)
        self.driver.on_end(number, value, error=cause, metrics=metrics, message=message, step=step)

    def _leave_open(self, number: int, reason: str, state: str) -> None:
        """End the sweep for a reason unrelated to its configs; a resume runs the trial again."""
        self.driver.leave_open(number)
        self.state, self.reason = state, reason

    def _break_off(self, trial_id: str, error_text: str) -> None:
        number = self._trials.pop(trial_id, None)
        if number is None:
            return
        cause = cause_of_loss(error_text, self._fetch_traces(number))
        if cause == "timeout" and (location := location_of(self._folder)) is not None:
            with suppress(OSError):  # the next attempt also removes it
                location.delete(f"{trial_name(number)}/{TIMEOUT_FILE}")
        self._losses_in_a_row = self._losses_in_a_row + 1 if cause == "lost" else 0
        message = error_text.strip().splitlines()[-1][:500] if error_text.strip() else ""
        self._end(number, cause, message, {})

    def _fetch_traces(self, number: int) -> Path:
        """The trial's folder, with the files that explain its death, fetched
        from the bucket if possible.
        """
        folder = trial_folder(self._folder, number)
        location = location_of(self._folder)
        if location is None:
            return folder
        try:
            fetch_files(location, trial_name(number), folder, (TIMEOUT_FILE, WORKER_FILE))
        except OSError as error:
            logger.warning("trial %s: why it broke off cannot be fetched: %s", number, error)
        return folder

    # When it ends

    def should_end(self) -> bool:
        """Whether the run is to end although trials are still open."""
        if self.error is not None:
            self.reason = str(self.error)
        elif not self.reason:
            self._look_for_reasons()
        return bool(self.reason)

    def _look_for_reasons(self) -> None:
        if self._target_reached():
            self.reason = f"the value {self._sweep.stop_at} was reached"
        elif self._failures.problem:
            self.state, self.reason = "failed", self._failures.problem
        elif self._capacity.problem:
            self.state, self.reason = "failed", self._capacity.problem
        elif self._losses_in_a_row >= MAX_LOSSES_IN_A_ROW:
            self.state = "lost"
            self.reason = f"trials were lost {self._losses_in_a_row} times without any progress"

    def _target_reached(self) -> bool:
        history, target = self.search.history, self._sweep.stop_at
        if target is None:
            return False
        best = next(iter(history.objectives.ranked(history.suggested)), None)
        if best is None or best.value is None or best.expected is None:
            return False
        return history.score(best.expected) >= history.score(target)

    def _lacks_values(self, result: dict[str, Any]) -> bool:
        """Whether trials end without the metric and none has ever had it: not the config's fault.

        Results under other names show that at once. A trainer may return nothing a few times.
        """
        trials = self.search.history.trials
        if any(trial.curve or trial.value is not None for trial in trials):
            return False
        n_silent = sum(trial.cause == "no result" for trial in trials)
        return bool(result.get(GIVEN)) or n_silent + 1 >= MAX_SILENT
