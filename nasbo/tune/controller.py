"""Tune's controller with three changes: worker processes are kept, and signals are heard.

Tune ends the processes of finished trials, all but one, unless other trials wait at that instant:
between two rounds, or while the method decides, that is all of them, and each costs seconds to
start again (torch alone is several). And a trial that waits for a process which is being started,
say on a node that has just joined, takes any other process that becomes free and gives its own
up: with many trials a new node never comes to work. Here all processes are kept as long as the
sweep goes on, and one that is being started is waited for. While no trial is there at all, Tune
asks the searcher again for ten minutes, and neither a signal nor a time limit ends the run: here
it looks at both each second.

All are private matters of Tune: where its insides differ from what is expected here, Tune is used
as it is.
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
    """Keeps every process that is offered, until all are to go."""

    def cache_object(self, key: Any, obj: Any) -> bool:
        self._cached_objects[key].append(obj)
        self._num_cached_objects += 1
        return True

    def flush_cached_objects(self, force_all: bool = False) -> Iterator[Any]:
        if force_all:
            yield from super().flush_cached_objects(force_all=True)


class PatientController(TuneController):
    """See the top of this file."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._actor_cache = KeepingCache()

    def _maybe_reuse_cached_actor(self, trial: Any) -> bool:
        own = self._trial_to_actor.get(trial)
        if own is not None and self._actor_manager.is_actor_started(own):
            return False  # its resources are there and its process is starting
        return bool(super()._maybe_reuse_cached_actor(trial))

    def _update_trial_queue(self, blocking: bool = False, timeout: int = 1) -> bool:
        return bool(super()._update_trial_queue(blocking=blocking, timeout=timeout))


@contextmanager
def patient_tune() -> Iterator[None]:
    """Inside, ``Tuner.fit`` uses the patient controller."""
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
