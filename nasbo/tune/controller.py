"""Tune controller that keeps worker processes and reacts to signals.

Tune ends the processes of finished trials, except for one, unless other trials are waiting at that
moment. Between two rounds, or during a decision, that is all of them, and each takes seconds to
start again (the import of torch alone takes several). Also, a trial that waits for its process to
start, say on a node that has just joined, takes any other process that becomes free and gives up
its own: with many trials a new node never gets any work. This controller keeps all processes as
long as the sweep runs, and waits for a process that is starting. While there is no trial at all,
Tune keeps asking the searcher for ten minutes, and neither a signal nor a time limit ends the run:
this controller checks both every second.

All of these are private parts of Tune. If they differ from what is expected here, Tune is used
without changes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray.tune.tune as tune_module
from ray.tune.execution.tune_controller import TuneController
from ray.tune.utils.object_cache import _ObjectCache

logger = logging.getLogger(__name__)
_EXPECTED = (
    *("_maybe_reuse_cached_actor", "_maybe_cache_trial_actor", "_cleanup_cached_actors"),
    "_update_trial_queue",
)


class KeepingCache(_ObjectCache):
    """Cache that keeps every process until all are flushed."""

    def cache_object(self, key: Any, obj: Any) -> bool:
        self._cached_objects[key].append(obj)
        self._num_cached_objects += 1
        return True

    def flush_cached_objects(self, force_all: bool = False) -> Iterator[Any]:
        if force_all:
            yield from super().flush_cached_objects(force_all=True)


class PatientController(TuneController):
    """Controller with the changes described at the top of this file."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._actor_cache = KeepingCache()

    def _maybe_reuse_cached_actor(self, trial: Any) -> bool:
        own = self._trial_to_actor.get(trial)
        if own is not None and self._actor_manager.is_actor_started(own):
            return False  # its resources are reserved and its process is starting
        return bool(super()._maybe_reuse_cached_actor(trial))

    def _update_trial_queue(self, blocking: bool = False, timeout: int = 1) -> bool:
        return bool(super()._update_trial_queue(blocking=blocking, timeout=timeout))


@contextmanager
def patient_tune() -> Iterator[None]:
    """Make ``Tuner.fit`` use the patient controller inside the block."""
    known = all(hasattr(TuneController, name) for name in _EXPECTED)
    if not known or getattr(tune_module, "TuneController", None) is not TuneController:
        logger.warning("this version of Tune has other insides: processes are not kept for rounds")
        yield
        return
    tune_module.TuneController = PatientController
    try:
        yield
    finally:
        tune_module.TuneController = TuneController
