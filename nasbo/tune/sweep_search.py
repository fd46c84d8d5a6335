"""The searcher of a sweep: journal on disk, limits, retries, and trials that need no worker."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from nasbo.errors import JournalError
from nasbo.history import Run, Trial
from nasbo.history.events import Budget
from nasbo.job import sweep_name
from nasbo.rounds import Schedule
from nasbo.search import Search
from nasbo.space import Space
from nasbo.storage.mirror import open_journal, place_of
from nasbo.storage.trial_files import fetch_files
from nasbo.sweep import Sweep, limits_of, trial_folder, trial_name
from nasbo.trainer import DATA, Trainer, cause_of
from nasbo.tune.cluster import Capacity
from nasbo.tune.endings import cause_of_loss, is_storage_error, should_retry
from nasbo.tune.remote_method import MethodRecipe
from nasbo.tune.searcher import NasboSearch
from nasbo.tune.trial import (
    CAUSE,
    GIVEN,
    MESSAGE,
    TIMEOUT_FILE,
    VALUE,
    WORKER_FILE,
    prune_checkpoints,
)

logger = logging.getLogger(__name__)
MAX_LOSSES_IN_A_ROW = 50
MAX_SILENT = 3
"""So many trials without any result, and none with one, end a sweep."""


class SweepSearch(NasboSearch):
    """The searcher of a sweep: journal on disk, limits of its own, trials that need no training."""

    def __init__(self, sweep: Sweep, space: Space, folder: Path, trainer: Trainer) -> None:
        self._sweep, self._folder, self._trainer = sweep, folder, trainer
        self.reason = ""
        self.state = "stopped"
        self.error: JournalError | None = None
        self._losses_in_a_row = 0
        self._capacity = Capacity(sweep)
        self._own_limits = limits_of(sweep)
        self._fingerprints: dict[str, int] = {}
        self._failures_in_a_row = 0
        self._last_failure = ""
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
            limits=self._own_limits,
        )
        ended = [t for t in self.search.history.suggested if not t.is_open]
        self._kept = {trial.id for trial in ended}
        if trainer.fingerprint is not None:
            for trial in ended:
                if trial.state == "finished" and (key := self._fingerprint(trial)) is not None:
                    self._fingerprints.setdefault(key, trial.id)

    def _new_search(self, past: Any = ()) -> Search:
        sweep = self._sweep
        search = Search(
            self.space,
            sweep.method,
            sweep.mode,
            sweep.seed,
            journal=open_journal(self._folder),
            notes=sweep.notes(),
            limits=self._limits,
            **sweep.method_options,
        )
        budget = search.history.budget or sweep.trials
        self.schedule = Schedule(sweep.schedule, sweep.batch, sweep.share, sweep.deadline_s, budget)
        return search

    def extend(self, n_trials: int) -> None:
        """Set a new total of trials."""
        self.search.record(Budget(trials=n_trials))
        self.schedule = Schedule(**{**vars(self.schedule), "budget": n_trials})
        self.rounds.schedule = self.schedule

    def slots(self) -> int:
        return self._capacity.slots()

    def _recipe(self) -> MethodRecipe:
        return replace(super()._recipe(), sweep=sweep_name(self._folder))

    def __getstate__(self) -> dict[str, Any]:
        """What Tune pickles beside its own state; a sweep never comes back from there."""
        return {"_metric": self._metric, "_mode": self._mode}

    def suggest(self, trial_id: str) -> Any:
        return self.FINISHED if self.should_end() else super().suggest(trial_id)

    def should_end(self) -> bool:
        """Whether the run is to end although trials are still open."""
        if self.error is not None:
            self.reason = str(self.error)
        elif not self.reason:
            self._look_for_reasons()
        return bool(self.reason)

    def _look_for_reasons(self) -> None:
        n_failures = self._failures_in_a_row
        if self._target_reached():
            self.reason = f"the value {self._sweep.stop_at} was reached"
        elif n_failures >= self._sweep.max_failures_in_a_row:
            self.state = "failed"
            self.reason = (
                f"{n_failures} trials failed one after the other; the last one: "
                f"{self._last_failure}"
            )
        elif self._capacity.problem:
            self.state, self.reason = "failed", self._capacity.problem
        elif self._losses_in_a_row >= MAX_LOSSES_IN_A_ROW:
            self.state = "lost"
            self.reason = f"trials were lost {self._losses_in_a_row} times without any progress"

    def note(self) -> str:
        """What a person who watches should know just now."""
        if self.slots() == 0:
            return "waiting for the cluster: no node has room for a trial"
        return "the method is deciding" if self._is_deciding() else ""

    def _target_reached(self) -> bool:
        history, target = self.search.history, self._sweep.stop_at
        own = (trial.value for trial in history.suggested if trial.value is not None)
        return target is not None and any(
            history.score(value) >= history.score(target) for value in own
        )

    def _on_journal_error(self, error: JournalError) -> Any:
        logger.error("%s", error)
        self.error = self.error or error
        return None

    def _guard(self, call: Any, *arguments: Any) -> None:
        if self.error is None:  # what the journal did not take is done again after a resume
            super()._guard(call, *arguments)

    def _tune_config(self, run: Run) -> dict[str, Any]:
        return {
            "trial": run.number,
            "config": super()._tune_config(run),
            "n_out_of_memory": run.retries.get("oom", 0),
        }

    def _cost(self, trial: Trial) -> float:
        """Floating-point operations, where the trainer's ``summary`` has them."""
        try:
            options = self._sweep.trainer_options
            return float(self._trainer.describe(trial.config, options).get("flops", 0.0))
        except Exception as error:
            logger.info("no cost known for trial %s: %s", trial.id, error)
            return 0.0

    def _screen(self, run: Run) -> bool:
        """Invalid configs and known networks end here, without a worker."""
        trial = self.search.history.trial(run.number)
        broken = self._own_limits.violation(trial.config) if self._own_limits else None
        if broken is not None:
            self.search.tell(run, error="invalid", message=f"constraint: {broken}")
            self._after_end(run.number)
            return True
        try:
            self._trainer.check_config(trial.config, self._sweep.trainer_options)
        except Exception as error:
            cause = cause_of(error)
            if cause == DATA:  # what the driver lacks its workers may have
                return self._answer_known(run)
            cause = "invalid" if cause == "crashed" else cause
            self.search.tell(run, error=cause, message=f"{type(error).__name__}: {error}")
            self._after_end(run.number)
            return True
        return self._answer_known(run)

    def _answer_known(self, run: Run) -> bool:
        trial = self.search.history.trial(run.number)
        key = None if run.is_repeat else self._fingerprint(trial)
        if key is None:
            return False
        twin = self.search.history.trial(self._fingerprints.setdefault(key, trial.id))
        if twin.state == "failed":
            self._fingerprints[key] = trial.id
        if twin.id == trial.id or twin.state != "finished":
            return False
        self.search.answer(trial, twin)
        return True

    def _fingerprint(self, trial: Trial) -> str | None:
        """What tells networks apart, where the trainer says it; without it a config is trained."""
        if self._trainer.fingerprint is None:
            return None
        try:
            return self._trainer.fingerprint(trial.config)
        except Exception as error:
            logger.info("no fingerprint known of trial %s: %s", trial.id, error)
            return None

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        self._losses_in_a_row = 0
        super().on_trial_result(trial_id, result)

    def _complete(self, trial_id: str, result: dict[str, Any] | None, error: bool) -> None:
        if error:
            return  # ``on_error`` comes next, with the reason
        if self.should_end() and not (result or {}).get("done"):
            self._trials.pop(trial_id, None)  # ended by us: stays open and is resumed
            return
        cause = str((result or {}).get(CAUSE) or "")
        if cause == "no result" and self._lacks_values(result or {}):
            reason = f"no trial can be judged: {self._message(result or {})}"
            self._leave_open(trial_id, reason, "failed")
        elif not self._try_again(trial_id, cause, self._message(result or {})):
            number = self._trials.get(trial_id)
            super()._complete(trial_id, result, error)
            self._after_end(number)

    def on_error(self, trial_id: str, error_text: str) -> None:
        """A trial broke off without a word of its own."""
        self._guard(self._break_off, trial_id, error_text)

    def _break_off(self, trial_id: str, error_text: str) -> None:
        number = self._trials.get(trial_id)
        if number is None:
            return
        cause = cause_of_loss(error_text, self._fetch_traces(number))
        if cause == "timeout" and (place := place_of(self._folder)) is not None:
            with suppress(OSError):  # the next attempt removes it, too
                place.delete(f"{trial_name(number)}/{TIMEOUT_FILE}")
        self._losses_in_a_row = self._losses_in_a_row + 1 if cause == "lost" else 0
        message = error_text.strip().splitlines()[-1][:500] if error_text.strip() else ""
        if not self._try_again(trial_id, cause, message):
            del self._trials[trial_id]
            self.search.tell(number, error=cause, message=message)
            self._after_end(number)

    def _fetch_traces(self, number: int) -> Path:
        """The trial's folder, with what it left behind as far as the bucket can be reached."""
        folder = trial_folder(self._folder, number)
        place = place_of(self._folder)
        if place is None:
            return folder
        try:
            fetch_files(place, trial_name(number), folder, (TIMEOUT_FILE, WORKER_FILE))
        except OSError as error:
            logger.warning("trial %s: why it broke off cannot be fetched: %s", number, error)
        return folder

    def _try_again(self, trial_id: str, cause: str, message: str) -> bool:
        number = self._trials.get(trial_id)
        if number is None:
            return False
        run = self.search.history.run(number)
        if cause == DATA:  # stays open: it is run again when the data are there
            self._leave_open(trial_id, f"the data cannot be used: {message}")
            return True
        if not should_retry(run, cause, message, self._sweep.max_failures):
            return False
        if is_storage_error(message):  # stays open: it is run again when the disk is well
            self._leave_open(trial_id, f"{self._folder} cannot be written: {message}")
            return True
        del self._trials[trial_id]
        self._steps.pop(trial_id, None)
        self.search.requeue(run, cause, message)
        self.rounds.requeue(number)
        return True

    def _lacks_values(self, result: dict[str, Any]) -> bool:
        """Whether trials end without the metric and none ever had it: not the config's fault.

        Results under other names show that at once; a trainer may return nothing a few times.
        """
        trials = self.search.history.trials
        if any(trial.curve or trial.value is not None for trial in trials):
            return False
        n_silent = sum(trial.cause == "no result" for trial in trials)
        return bool(result.get(GIVEN)) or n_silent + 1 >= MAX_SILENT

    def _leave_open(self, trial_id: str, reason: str, state: str = "lost") -> None:
        """End the sweep for a reason outside of its configs; a resume runs the trial again."""
        del self._trials[trial_id]
        self._steps.pop(trial_id, None)
        self.state, self.reason = state, reason

    def _after_end(self, number: int | None) -> None:
        """Count failures, and keep checkpoints only of the best."""
        if number is None:
            return
        run = self.search.history.run(number)
        if run.ending is not None and run.ending.is_failure:
            self._failures_in_a_row += 1
            self._last_failure = f"{run.ending} {run.message}".strip()
        else:
            self._failures_in_a_row = 0
        self._kept.add(number)
        ended = [self.search.history.run(known) for known in self._kept]
        try:
            kept = prune_checkpoints(self._folder, ended, self.search.history, self._sweep)
        except OSError as error:  # the next trial that ends tries again
            logger.warning("old checkpoints cannot be removed: %s", error)
        else:
            self._kept = {run.number for run in kept}

    def _ending(
        self, result: dict[str, Any] | None, error: bool, last_seen: int
    ) -> tuple[float | None, str | None]:
        if result and result.get(CAUSE):
            return None, str(result[CAUSE])
        return super()._ending(result, error, last_seen)

    def _message(self, result: dict[str, Any]) -> str:
        return str(result.get(MESSAGE) or "")
